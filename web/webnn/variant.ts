// The graphs of a session at one set of shapes, with the slots of their tensors.
import type {MLOperandDescriptor} from './api.js';
import type {BoundGraph} from './bound-graph.js';
import {descriptorText} from './data-types.js';
import type {Access, TensorCache, TensorSlot} from './tensor-cache.js';

export class Variant {
  // By the numbers of the partitions.
  readonly #graphs = new Map<number, BoundGraph>();
  // Slots of the model's inputs, which partitions share.
  readonly #feeds = new Map<string, TensorSlot>();
  readonly #slots = new Set<TensorSlot>();
  #runs = 0;
  #isEvicted = false;

  constructor(readonly cache: TensorCache) {}

  graph(partition: number): BoundGraph | undefined {
    return this.#graphs.get(partition);
  }

  setGraph(partition: number, graph: BoundGraph): void {
    const before = this.#graphs.get(partition);
    this.#graphs.set(partition, graph);
    if (before === undefined) return;
    before.graph.destroy();
    const slots = [...before.inputs, ...before.outputs].map(({slot}) => slot);
    this.#drop(slots.filter((slot) => ![...this.#feeds.values()].includes(slot)));
  }

  get feedSlots(): Iterable<TensorSlot> {
    return this.#feeds.values();
  }

  feedSlot(name: string, descriptor: MLOperandDescriptor, access: Access): TensorSlot {
    const key = `${name} ${descriptorText(descriptor)}`;
    let slot = this.#feeds.get(key);
    if (slot === undefined) this.#feeds.set(key, (slot = this.newSlot(descriptor, access)));
    return slot;
  }

  newSlot(descriptor: MLOperandDescriptor, access: Access): TensorSlot {
    const slot = this.cache.newSlot(descriptor, access);
    this.#slots.add(slot);
    return slot;
  }

  beginRun(): void {
    ++this.#runs;
  }

  endRun(): void {
    if (--this.#runs === 0 && this.#isEvicted) this.#destroy();
  }

  // Destroys graphs and gives tensors back, once the runs that use them have their results.
  evict(): void {
    this.#isEvicted = true;
    if (this.#runs === 0) this.#destroy();
  }

  #destroy(): void {
    for (const {graph} of this.#graphs.values()) graph.destroy();
    this.#graphs.clear();
    this.#drop([...this.#slots]);
  }

  #drop(slots: readonly TensorSlot[]): void {
    for (const slot of slots) this.#slots.delete(slot);
    this.cache.evict(slots);
  }
}
