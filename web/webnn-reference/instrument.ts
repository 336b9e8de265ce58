// Counts how a program uses WebNN. It decorates contexts, of a browser or of the reference: their
// methods are replaced on the object itself, whose identity does not change.
import type {MLOperandDataType} from './elements.js';
import {byteLengthOf} from './elements.js';

// The parts of the interfaces that are used, of any implementation.
interface TensorLike {
  readonly dataType: MLOperandDataType;
  readonly shape: readonly number[];
  destroy(): void;
}
interface ContextLike {
  readonly lost: Promise<unknown>;
  createTensor(...args: never[]): Promise<TensorLike>;
  createConstantTensor(...args: never[]): Promise<TensorLike>;
  readTensor(...args: never[]): Promise<unknown>;
  writeTensor(...args: never[]): void;
  dispatch(...args: never[]): void;
}
interface MLLike {
  createContext(...args: never[]): Promise<ContextLike>;
}
type BuilderClass = new (...args: any[]) => {build(...args: any[]): Promise<object>};
type Method = (...args: any[]) => any;

// Tensors and graphs are numbered from 1, in the order in which they are first seen.
export interface DispatchRecord {
  graph: number;
  // 'a=1,b=2;y=3': the tensors of the inputs and of the outputs, by name.
  signature: string;
}

function replace(target: object, name: string, wrap: (original: Method) => Method): void {
  const original = (target as Record<string, Method>)[name].bind(target);
  Object.defineProperty(target, name, {value: wrap(original), configurable: true, writable: true});
}

export class Instrument {
  // Tensors, including constant ones.
  created = 0;
  destroyed = 0;
  liveBytes = 0;
  reads = 0;
  readBytes = 0;
  writes = 0;
  writeBytes = 0;
  // Dispatches with other tensors than the previous one of the same graph.
  rebinds = 0;
  contexts = 0;
  // Of builders of the class that `builder` returns.
  builds = 0;
  readonly dispatches: DispatchRecord[] = [];

  readonly #numbers = new WeakMap<object, number>();
  #last = 0;
  readonly #signatures = new Map<number, string>();

  get live(): number {
    return this.created - this.destroyed;
  }

  // The number of different bindings of a graph's dispatches; without a number, of all graphs.
  signatures(graph?: number): number {
    const some = this.dispatches.filter((record) => graph === undefined || record.graph === graph);
    return new Set(some.map((record) => `${record.graph}:${record.signature}`)).size;
  }

  // Resets all counts to 0, except those of live objects.
  reset(): void {
    this.created = this.live;
    this.destroyed = 0;
    this.reads = this.readBytes = this.writes = this.writeBytes = 0;
    this.rebinds = this.contexts = this.builds = 0;
    this.dispatches.length = 0;
  }

  // A class of builders whose graphs are counted.
  builder<Class extends BuilderClass>(Builder: Class): Class {
    const instrument = this;
    return class extends Builder {
      override async build(...args: any[]): Promise<object> {
        const graph = await super.build(...args);
        ++instrument.builds;
        return graph;
      }
    };
  }

  // Watches a context from now on.
  watch(context: ContextLike): void {
    ++this.contexts;
    const tensors = new Map<TensorLike, number>();
    const forget = (tensor: TensorLike) => {
      const bytes = tensors.get(tensor);
      if (bytes === undefined) return;
      tensors.delete(tensor);
      ++this.destroyed;
      this.liveBytes -= bytes;
    };
    const creates =
      (create: Method) =>
      async (...args: unknown[]) => {
        const tensor: TensorLike = await create(...args);
        const bytes = byteLengthOf(tensor);
        tensors.set(tensor, bytes);
        ++this.created;
        this.liveBytes += bytes;
        replace(tensor, 'destroy', (destroy) => () => {
          destroy();
          forget(tensor);
        });
        return tensor;
      };
    replace(context, 'createTensor', creates);
    replace(context, 'createConstantTensor', creates);
    replace(context, 'readTensor', (read) => (tensor: TensorLike, ...output) => {
      ++this.reads;
      this.readBytes += tensors.get(tensor) ?? 0;
      return read(tensor, ...output);
    });
    replace(context, 'writeTensor', (write) => (tensor: TensorLike, ...input) => {
      write(tensor, ...input);
      ++this.writes;
      this.writeBytes += tensors.get(tensor) ?? 0;
    });
    replace(context, 'dispatch', (dispatch) => (graph: object, inputs: object, outputs: object) => {
      dispatch(graph, inputs, outputs);
      this.#record(graph, inputs, outputs);
    });
    // A lost context destroys its tensors.
    void context.lost.then(() => [...tensors.keys()].forEach(forget));
  }

  #numberOf(object: object): number {
    const number = this.#numbers.get(object) ?? ++this.#last;
    this.#numbers.set(object, number);
    return number;
  }

  #record(graph: object, inputs: object, outputs: object): void {
    const binding = (named: object) =>
      Object.entries(named)
        .map(([name, tensor]) => `${name}=${this.#numberOf(tensor)}`)
        .sort()
        .join(',');
    const record = {
      graph: this.#numberOf(graph),
      signature: `${binding(inputs)};${binding(outputs)}`,
    };
    const before = this.#signatures.get(record.graph);
    if (before !== undefined && before !== record.signature) ++this.rebinds;
    this.#signatures.set(record.graph, record.signature);
    this.dispatches.push(record);
  }
}

// Watches a context, or all contexts that an ML object creates from now on.
export function instrument(target: MLLike | ContextLike): Instrument {
  const counts = new Instrument();
  if ('createContext' in target) {
    replace(target, 'createContext', (create) => async (...args) => {
      const context: ContextLike = await create(...args);
      counts.watch(context);
      return context;
    });
  } else {
    counts.watch(target);
  }
  return counts;
}
