// The MLTensors of one session. Each slot, which is a name of a partition at given shapes, keeps
// its first tensor. A slot that lends its tensor to the application takes the next free one.
import type {Counters} from '../common/counters.js';
import {env} from '../common/env.js';
import type {MLOperandDescriptor, MLTensor} from './api.js';
import {byteLengthOf} from './data-types.js';
import type {Device} from './device.js';

// The uses of a slot's tensor. Fewer uses are faster on some devices.
export interface Access {
  readonly readable: boolean;
  readonly writable: boolean;
}

// Tensors that pass between the device and the application in both directions.
export const LENT: Access = {readable: true, writable: true};

// A tensor that the package made.
export class OwnedTensor {
  // The slot that had it last.
  home: TensorSlot;
  isLent = false;
  // The number of runs that have it as a feed and have not used it yet.
  #holds = 0;
  #isDisposed = false;
  readonly byteLength: number;

  constructor(
    readonly tensor: MLTensor,
    readonly cache: TensorCache,
    home: TensorSlot,
  ) {
    this.home = home;
    this.byteLength = byteLengthOf(tensor);
  }

  hold(): void {
    ++this.#holds;
  }

  unhold(): void {
    if (--this.#holds === 0 && this.#isDisposed) this.cache.takeBack(this);
  }

  // The application does not need it any more.
  dispose(): void {
    if (!this.isLent || this.#isDisposed) return;
    this.#isDisposed = true;
    if (this.#holds === 0) this.cache.takeBack(this);
  }

  lend(): void {
    this.isLent = true;
    this.#isDisposed = false;
  }
}

const owners = new WeakMap<MLTensor, OwnedTensor>();

// The package's record of a tensor; undefined if the application made it.
export function ownerOf(tensor: MLTensor): OwnedTensor | undefined {
  return owners.get(tensor);
}

// A place for a tensor of a given type, shape and access.
export class TensorSlot {
  current: OwnedTensor | undefined;
  // The last run that wrote its tensor.
  writtenIn = 0;
  isEvicted = false;
  readonly key: string;

  constructor(
    readonly descriptor: MLOperandDescriptor,
    readonly access: Access,
  ) {
    const {dataType, shape} = descriptor;
    this.key = `${dataType} ${shape} ${+access.readable}${+access.writable}`;
  }
}

export class TensorCache {
  readonly #slots = new Set<TensorSlot>();
  // Free tensors by the slots that they fit; the last of each list was returned last.
  readonly #free = new Map<string, OwnedTensor[]>();
  #idleBytes = 0;
  #lentCount = 0;
  #isClosed = false;
  // Runs that are queued or not settled.
  runs = 0;

  // `whenEmpty` is called once after close(), when no tensor is lent any more.
  constructor(
    readonly device: Device,
    readonly counters: Counters,
    readonly whenEmpty: () => void,
  ) {
    device.caches.add(this);
  }

  newSlot(descriptor: MLOperandDescriptor, access: Access): TensorSlot {
    const slot = new TensorSlot(descriptor, access);
    this.#slots.add(slot);
    return slot;
  }

  // Gives the slot an existing tensor: its own, a free one, or that of a slot that does not need
  // its tensor in this run. Returns whether there was one.
  fill(slot: TensorSlot, spare: Iterable<TensorSlot> = []): boolean {
    if (slot.current === undefined) {
      const owned = this.#takeFree(slot) ?? takeSpare(slot, spare);
      if (owned === undefined) return false;
      owned.home = slot;
      slot.current = owned;
    }
    this.counters.add('reused');
    return true;
  }

  // Gives the slot a new tensor.
  async create(slot: TensorSlot): Promise<void> {
    const tensor = await this.device.context.createTensor({...slot.descriptor, ...slot.access});
    const owned = new OwnedTensor(tensor, this, slot);
    owners.set(tensor, owned);
    this.counters.add('created');
    this.counters.add('live');
    this.counters.add('liveBytes', owned.byteLength);
    this.#keep(owned);
  }

  // Removes the slot's tensor for the application.
  lend(slot: TensorSlot): OwnedTensor {
    const owned = slot.current!;
    slot.current = undefined;
    this.#idleBytes -= owned.byteLength;
    ++this.#lentCount;
    owned.lend();
    return owned;
  }

  takeBack(owned: OwnedTensor): void {
    owned.isLent = false;
    --this.#lentCount;
    if (this.#isClosed || owned.home.isEvicted || this.device.lossMessage !== undefined) {
      this.#destroy(owned);
    } else {
      this.#keep(owned);
      if (this.runs === 0) keepWithinLimit(this.device);
    }
    this.#endIfEmpty();
  }

  // A lent tensor that the application can no longer dispose of.
  destroyLent(owned: OwnedTensor): void {
    if (!owned.isLent) return;
    owned.isLent = false;
    --this.#lentCount;
    this.#destroy(owned);
    this.#endIfEmpty();
  }

  // Drops slots with their tensors. Lent tensors are destroyed when they are given back.
  evict(slots: Iterable<TensorSlot>): void {
    for (const slot of slots) {
      this.#slots.delete(slot);
      slot.isEvicted = true;
      this.#empty(slot);
    }
    for (const list of this.#free.values()) {
      const gone = list.filter(({home}) => home.isEvicted);
      for (const owned of gone) {
        list.splice(list.indexOf(owned), 1);
        this.#discard(owned);
      }
    }
  }

  beginRun(): void {
    ++this.runs;
  }

  endRun(): void {
    if (--this.runs > 0) return;
    const {caches} = this.device;
    if (!caches.delete(this)) return;
    caches.add(this); // as the most recently used
    keepWithinLimit(this.device);
  }

  get idleBytes(): number {
    return this.#idleBytes;
  }

  // Destroys free tensors, then those of slots, until `bytes` are freed.
  shed(bytes: number): void {
    const least = Math.max(0, this.#idleBytes - bytes);
    for (const list of this.#free.values()) {
      while (list.length > 0 && this.#idleBytes > least) this.#discard(list.shift()!);
    }
    for (const slot of this.#slots) {
      if (this.#idleBytes <= least) return;
      this.#empty(slot);
    }
  }

  // Destroys all tensors except lent ones.
  close(): void {
    this.#isClosed = true;
    this.device.caches.delete(this);
    this.evict([...this.#slots]);
    this.#endIfEmpty();
  }

  #endIfEmpty(): void {
    if (this.#isClosed && this.#lentCount === 0) this.whenEmpty();
  }

  // Of the free tensors, the one that the slot had last, or else the one that was returned last.
  #takeFree(slot: TensorSlot): OwnedTensor | undefined {
    const list = this.#free.get(slot.key);
    if (list === undefined || list.length === 0) return undefined;
    const own = list.map(({home}) => home).lastIndexOf(slot);
    return list.splice(own < 0 ? list.length - 1 : own, 1)[0];
  }

  #keep(owned: OwnedTensor): void {
    this.#idleBytes += owned.byteLength;
    const {home} = owned;
    if (home.current === undefined) {
      home.current = owned;
      return;
    }
    const list = this.#free.get(home.key);
    if (list === undefined) this.#free.set(home.key, [owned]);
    else list.push(owned);
  }

  #empty(slot: TensorSlot): void {
    const owned = slot.current;
    slot.current = undefined;
    if (owned !== undefined) this.#discard(owned);
  }

  #discard(owned: OwnedTensor): void {
    this.#idleBytes -= owned.byteLength;
    this.#destroy(owned);
  }

  #destroy(owned: OwnedTensor): void {
    owned.tensor.destroy();
    this.counters.add('destroyed');
    this.counters.add('live', -1);
    this.counters.add('liveBytes', -owned.byteLength);
  }
}

function takeSpare(slot: TensorSlot, spare: Iterable<TensorSlot>): OwnedTensor | undefined {
  for (const other of spare) {
    if (other.key !== slot.key || other.current === undefined) continue;
    const owned = other.current;
    other.current = undefined;
    return owned;
  }
  return undefined;
}

// Limits the tensors of sessions that are not running to env.tenon.mlTensorCacheBytes.
function keepWithinLimit({caches}: Device): void {
  const limit = env.tenon.mlTensorCacheBytes;
  if (limit === undefined) return;
  const idle = [...caches].filter(({runs}) => runs === 0);
  let excess = idle.reduce((sum, {idleBytes}) => sum + idleBytes, 0) - limit;
  for (const cache of idle) {
    if (excess <= 0) return;
    const before = cache.idleBytes;
    cache.shed(excess);
    excess -= before - cache.idleBytes;
  }
}
