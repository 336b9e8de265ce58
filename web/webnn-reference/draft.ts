// An operator under construction. Its rule gets checked operands and options from here, and
// declares the outputs.
import {checkShape, type ContextState} from './context.js';
import {castNumber, type Data, type Descriptor, type MLOperandDataType} from './elements.js';
import type {MLTensorLimits} from './limits.js';
import {MLOperand, operands, type Inputs, type Node, type OperandState} from './operand.js';
import type {MLOperatorName} from './operators.js';
import {sameShape} from './shapes.js';
import {
  dictionary,
  double,
  enumeration,
  fail,
  numeric,
  unsigned,
  unsignedSequence,
  type Dictionary,
} from './webidl.js';

// Computes the data of the outputs.
export type Kernel = (inputs: Inputs, outputs: readonly Descriptor[]) => Data[];
// The form of most kernels: one output.
export type SingleKernel = (inputs: Inputs, output: Descriptor) => Data;

// The arguments of the builder's method, and the operator's operands and outputs.
export type Rule = (draft: Draft, ...args: any[]) => MLOperand | MLOperand[];

export class Draft {
  readonly #inputs: Record<string, OperandState> = {};
  #options: Dictionary = {};

  constructor(
    readonly operator: MLOperatorName,
    readonly builder: object,
    readonly context: ContextState,
  ) {}

  // Error texts begin with the operator and, after `options`, its label.
  what(name: string): string {
    const {label} = this.#options;
    return `${this.operator}${label ? ` '${String(label)}'` : ''}: ${name}`;
  }

  fail(name: string, expected: string, got: unknown): never {
    return fail(this.what(name), expected, got);
  }

  // Takes an operand. It must have the type of `like` if that is given.
  operand(name: string, value: unknown, like?: Descriptor, key = name): OperandState {
    const operand = operands.of(value, this.what(key));
    if (operand.builder !== this.builder) {
      throw new TypeError(`${this.what(key)}: it is of another builder`);
    }
    this.#checkLimits(name, key, operand);
    if (like !== undefined && operand.dataType !== like.dataType) {
      this.fail(key, `the type ${like.dataType}`, operand.dataType);
    }
    this.#inputs[key] = operand;
    return operand;
  }

  options(value: unknown): void {
    this.#options = dictionary(value, this.what('options'));
  }

  // The options that are operands; they must have `shape`.
  operandOption(
    name: string,
    like: Descriptor,
    shape?: readonly number[],
  ): OperandState | undefined {
    const value = this.#options[name];
    if (value === undefined) return undefined;
    const operand = this.operand(name, value, like);
    if (shape !== undefined) this.checkShape(name, operand, shape);
    return operand;
  }

  checkShape(name: string, operand: Descriptor, shape: readonly number[]): void {
    if (!sameShape(operand.shape, shape))
      this.fail(name, `the shape [${shape}]`, `[${operand.shape}]`);
  }

  option<T>(name: string, convert: (value: unknown, what: string) => T): T | undefined {
    const value = this.#options[name];
    return value === undefined ? undefined : convert(value, this.what(name));
  }

  flag(name: string, otherwise = false): boolean {
    return this.option(name, Boolean) ?? otherwise;
  }

  choice<T extends string>(name: string, values: readonly T[]): T {
    return this.option(name, (value, what) => enumeration(value, values, what)) ?? values[0];
  }

  integer(name: string, otherwise: number): number {
    return this.option(name, unsigned) ?? otherwise;
  }

  integers(name: string): number[] | undefined {
    return this.option(name, unsignedSequence);
  }

  // A list of integers as long as the default list.
  integersLike(name: string, otherwise: number[], least = 0): number[] {
    const values = this.integers(name) ?? otherwise;
    if (values.length !== otherwise.length) {
      this.fail(name, `${otherwise.length} integers`, values.length);
    }
    const small = values.find((value) => value < least);
    if (small !== undefined) this.fail(name, `integers of at least ${least}`, small);
    return values;
  }

  // An option of type double, in the precision of a data type.
  float(name: string, otherwise: number, dataType: MLOperandDataType): number {
    return castNumber(this.option(name, double) ?? otherwise, dataType) as number;
  }

  // An option of type MLNumber.
  number(name: string, otherwise: number, dataType: MLOperandDataType): number | bigint {
    return castNumber(this.option(name, numeric) ?? otherwise, dataType);
  }

  axis(value: unknown, rank: number, name = 'axis'): number {
    const axis = unsigned(value, this.what(name));
    if (axis >= rank) this.fail(name, `an axis below ${rank}`, axis);
    return axis;
  }

  // Axes without duplicates.
  axes(name: string, otherwise: number[], rank: number): number[] {
    const axes = this.integers(name) ?? otherwise;
    for (const axis of axes) this.axis(axis, rank, name);
    if (new Set(axes).size !== axes.length) this.fail(name, 'different axes', `[${axes}]`);
    return axes;
  }

  // Completes the operator.
  outputs(descriptors: readonly Descriptor[], kernel: Kernel): MLOperand[] {
    const name = 'output' in this.#limits ? 'output' : 'outputs';
    for (const descriptor of descriptors) {
      checkShape(descriptor, this.context, this.what(name));
      this.#checkLimits(name, name, descriptor);
    }
    const states = descriptors.map(({dataType, shape}): OperandState => {
      return {dataType, shape: Object.freeze([...shape]), builder: this.builder};
    });
    const node: Node = {
      inputs: this.#inputs,
      outputs: states,
      run: (inputs) => kernel(inputs, states),
    };
    return states.map((state) => {
      state.node = node;
      return operands.create(MLOperand.prototype, state);
    });
  }

  output(dataType: MLOperandDataType, shape: readonly number[], kernel: SingleKernel): MLOperand {
    return this.outputs([{dataType, shape}], (inputs, [output]) => [kernel(inputs, output)])[0];
  }

  get #limits(): Record<string, MLTensorLimits> {
    return this.context.device.limits[this.operator];
  }

  #checkLimits(name: string, key: string, {dataType, shape}: Descriptor): void {
    const {dataTypes, rankRange} = this.#limits[name];
    if (!dataTypes.includes(dataType)) {
      this.fail(key, `one of the types ${dataTypes.join(', ') || '(none)'}`, dataType);
    }
    const {min, max} = rankRange;
    if (shape.length < min || shape.length > max) {
      this.fail(key, `a rank from ${min} to ${max}`, shape.length);
    }
  }
}
