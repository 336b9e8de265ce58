// The graph of a partition at given shapes, and the slots of its inputs and outputs.
import type {Counters} from '../common/counters.js';
import type {Tensor} from '../common/index.js';
import type {NumericType} from '../common/tensor.js';
import type {Slot} from '../src/slot.js';
import type {MLGraph, MLTensor} from './api.js';
import type {ValueSource} from './description.js';
import type {Device} from './device.js';
import type {ProgramValue} from './program.js';
import type {TensorSlot} from './tensor-cache.js';
import type {Conversion} from './transfer.js';

// Shape and type of a value in the core, which may differ from those of its tensor.
export interface CoreValue {
  readonly type: Tensor.Type;
  readonly dims: readonly number[];
}

// An input or output of the graph.
export class Port {
  // The core's value at the barrier; it does not change between runs.
  core: CoreValue | undefined;
  // The tensor in this run.
  tensor!: MLTensor;
  readonly conversion: Conversion | undefined;

  constructor(
    readonly value: ProgramValue,
    // Its index in the description of the partition.
    readonly index: number,
    // Undefined for a value of another partition, which has the slot.
    readonly slot: TensorSlot,
  ) {
    const {name, coreType} = value;
    if (coreType !== undefined) {
      this.conversion = {coreType: coreType as NumericType, what: `'${name}'`};
    }
  }

  // Whether the value at the barrier has the shape for which the graph was built.
  fits(slot: Slot): boolean {
    if (this.core !== undefined) return slot.hasDims(this.core.dims);
    this.core = {type: slot.type, dims: slot.dims};
    return true;
  }
}

export class InputPort extends Port {
  constructor(
    value: ProgramValue,
    index: number,
    slot: TensorSlot,
    readonly source: ValueSource,
  ) {
    super(value, index, slot);
  }
}

export class OutputPort extends Port {
  // Whether the application has the tensor of its slot.
  isLent = false;

  constructor(
    value: ProgramValue,
    index: number,
    slot: TensorSlot,
    readonly isHost: boolean,
    readonly fetches: readonly string[],
  ) {
    super(value, index, slot);
  }
}

export class BoundGraph {
  #bound: MLTensor[] = [];
  readonly #inputs: Record<string, MLTensor> = {};
  readonly #outputs: Record<string, MLTensor> = {};

  constructor(
    readonly graph: MLGraph,
    readonly inputs: readonly InputPort[],
    readonly outputs: readonly OutputPort[],
  ) {}

  // Runs the graph with the tensors of its ports.
  dispatch({context}: Device, counters: Counters): void {
    const bound = [...this.inputs, ...this.outputs].map(({tensor}) => tensor);
    const isBoundAnew = bound.some((tensor, i) => tensor !== this.#bound[i]);
    if (isBoundAnew) {
      for (const {value, tensor} of this.inputs) this.#inputs[value.name] = tensor;
      for (const {value, tensor} of this.outputs) this.#outputs[value.name] = tensor;
    }
    context.dispatch(this.graph, this.#inputs, this.#outputs);
    counters.add('dispatches');
    if (isBoundAnew && this.#bound.length > 0) counters.add('rebinds');
    this.#bound = bound;
  }
}
