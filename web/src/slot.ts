// The records in the module's memory for feeds and outputs: struct Slot of shim/session.h.
import {arrayOver, type NumericType, Tensor} from '../common/tensor.js';
import type {Core} from './core.js';
import {typeName, typeNumber} from './element-types.js';

const MOST_DIMS = 32;
const SLOT_BYTES = 24 + 8 * MOST_DIMS;
const IS_USED = 0;
const TYPE = 4;
const RANK = 8;
const BYTE_SIZE = 12;
const DATA = 16;
const DIMS = 24;
const LENGTH_BYTES = 4; // of a packed string's length

// Strings in the module's form: first the size in bytes of each, then the bytes of all.
function packStrings(strings: readonly unknown[]): Uint8Array {
  const texts = strings.map((text) => {
    if (typeof text !== 'string') throw new TypeError(`expected a string, got ${typeof text}`);
    return new TextEncoder().encode(text);
  });
  const begin = texts.length * LENGTH_BYTES;
  const packed = new Uint8Array(texts.reduce((size, text) => size + text.length, begin));
  const lengths = new DataView(packed.buffer);
  let at = begin;
  texts.forEach((text, i) => {
    lengths.setUint32(i * LENGTH_BYTES, text.length, true);
    packed.set(text, at);
    at += text.length;
  });
  return packed;
}

function unpackStrings(packed: Uint8Array, count: number): string[] {
  const lengths = new DataView(packed.buffer, packed.byteOffset);
  const decoder = new TextDecoder('utf-8', {ignoreBOM: true});
  let at = count * LENGTH_BYTES;
  return Array.from({length: count}, (_, i) => {
    const begin = at;
    at += lengths.getUint32(i * LENGTH_BYTES, true);
    return decoder.decode(packed.subarray(begin, at));
  });
}

function bytesOf(type: Tensor.Type, data: Tensor.DataType): Uint8Array {
  if (type === 'string') return packStrings(data as string[]);
  const {buffer, byteOffset, byteLength} = data as Exclude<Tensor.DataType, string[]>;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

// A tensor on the CPU.
type Fed = Pick<Tensor, 'type' | 'dims' | 'data'>;

// One slot. Each access gets the memory again, because it moves when it grows.
export class Slot {
  readonly #address: number;

  constructor(
    readonly core: Core,
    firstAddress: number,
    index: number,
  ) {
    this.#address = firstAddress + index * SLOT_BYTES;
  }

  // Lets the run allocate this output.
  fetch(): void {
    this.#set(IS_USED, 1);
  }

  // Puts a tensor into the slot, after copying it into the module unless it is there. The caller must
  // free the block; 0 if there is none.
  feed(operation: string, tensor: Fed): number {
    const bytes = bytesOf(tensor.type, tensor.data);
    if (this.core.has(bytes)) {
      this.describe(operation, tensor, bytes.length, bytes.byteOffset);
      return 0;
    }
    const block = this.core.copyIn(operation, bytes);
    this.describe(operation, tensor, bytes.length, block);
    return block;
  }

  // Puts a tensor whose data is at an address into the slot; the address is 0 if it is not in the
  // module.
  describe(
    operation: string,
    {type, dims}: Pick<Fed, 'type' | 'dims'>,
    byteSize: number,
    address = 0,
  ): void {
    if (dims.length > MOST_DIMS) {
      throw new RangeError(`${operation}: a tensor has more than ${MOST_DIMS} dimensions`);
    }
    this.#set(IS_USED, 1);
    this.#set(TYPE, typeNumber(type));
    this.#set(RANK, dims.length);
    this.#set(BYTE_SIZE, byteSize);
    this.#set(DATA, address);
    const view = this.#view();
    dims.forEach((dim, i) => view.setFloat64(DIMS + 8 * i, dim, true));
  }

  get type(): Tensor.Type {
    return typeName(this.#get(TYPE));
  }

  get dims(): number[] {
    const view = this.#view();
    return Array.from({length: this.#get(RANK)}, (_, i) => view.getFloat64(DIMS + 8 * i, true));
  }

  // Whether the slot has these dimensions.
  hasDims(dims: readonly number[]): boolean {
    const view = this.#view();
    if (view.getUint32(RANK, true) !== dims.length) return false;
    return dims.every((dim, i) => view.getFloat64(DIMS + 8 * i, true) === dim);
  }

  // The elements in the module's memory; valid until it moves.
  get bytes(): Uint8Array {
    return this.core.bytes(this.#get(DATA), this.#get(BYTE_SIZE));
  }

  // Copies the output of the run: into `into`, or into a new tensor.
  read(into: Tensor | null): Tensor {
    const {type, dims, bytes} = this;
    if (into === null) return new Tensor(type, this.#dataOf(type, bytes, dims), dims);
    if (type === 'string') {
      const strings = unpackStrings(bytes, into.size);
      (into.data as string[]).splice(0, into.size, ...strings);
    } else {
      const target = bytesOf(type, into.data);
      if (!this.core.has(target)) target.set(bytes); // else the run has written there
    }
    return into;
  }

  #dataOf(type: Tensor.Type, bytes: Uint8Array, dims: number[]): Tensor.DataType {
    if (type === 'string') {
      return unpackStrings(
        bytes,
        dims.reduce((size, dim) => size * dim, 1),
      );
    }
    return arrayOver(type as NumericType, bytes.slice().buffer);
  }

  #view(): DataView {
    return new DataView(this.core.memory.buffer, this.#address, SLOT_BYTES);
  }

  #get(field: number): number {
    return this.#view().getUint32(field, true);
  }

  #set(field: number, value: number): void {
    this.#view().setUint32(field, value, true);
  }
}
