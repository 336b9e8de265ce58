// Converts arguments as Web IDL does: a value that does not fit is a TypeError.
import {
  byteLengthOf,
  DATA_TYPES,
  matches,
  type Descriptor,
  type MLOperandDataType,
} from './elements.js';

export type Dictionary = Readonly<Record<string, unknown>>;
export type BufferSource = ArrayBuffer | SharedArrayBuffer | ArrayBufferView;

export function fail(what: string, expected: string, got: unknown): never {
  const text = typeof got === 'object' || typeof got === 'function' ? typeof got : String(got);
  throw new TypeError(`${what}: expected ${expected}, got ${text}`);
}

export function dictionary(value: unknown, what: string): Dictionary {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' && typeof value !== 'function') fail(what, 'an object', value);
  return value as Dictionary;
}

function integer(value: unknown, least: number, greatest: number, what: string): number {
  const number = Math.trunc(Number(value)) + 0;
  if (typeof value === 'bigint' || !(number >= least && number <= greatest)) {
    fail(what, `an integer from ${least} to ${greatest}`, value);
  }
  return number;
}

// [EnforceRange] unsigned long
export function unsigned(value: unknown, what: string): number {
  return integer(value, 0, 2 ** 32 - 1, what);
}

// [EnforceRange] long
export function signed(value: unknown, what: string): number {
  return integer(value, -(2 ** 31), 2 ** 31 - 1, what);
}

export function sequence<T>(
  value: unknown,
  convert: (item: unknown, what: string) => T,
  what: string,
): T[] {
  const iterate = (value as Iterable<unknown> | undefined)?.[Symbol.iterator];
  if (typeof value !== 'object' || typeof iterate !== 'function') fail(what, 'a sequence', value);
  return Array.from(value as Iterable<unknown>, (item, i) => convert(item, `${what}[${i}]`));
}

export function unsignedSequence(value: unknown, what: string): number[] {
  return sequence(value, unsigned, what);
}

export function enumeration<T extends string>(
  value: unknown,
  values: readonly T[],
  what: string,
): T {
  const text = String(value) as T;
  if (!values.includes(text)) fail(what, `one of ${values.join(', ')}`, text);
  return text;
}

export function double(value: unknown, what: string): number {
  const number = typeof value === 'bigint' ? NaN : Number(value);
  if (!Number.isFinite(number)) fail(what, 'a finite number', value);
  return number;
}

// (bigint or unrestricted double)
export function numeric(value: unknown): number | bigint {
  return typeof value === 'bigint' ? value : Number(value);
}

export function dataType(value: unknown, what: string): MLOperandDataType {
  return enumeration(value, DATA_TYPES, what);
}

// MLOperandDescriptor
export function descriptor(value: unknown, what: string): Descriptor {
  const members = dictionary(value, what);
  return {
    dataType: dataType(members.dataType, `${what}.dataType`),
    shape: Object.freeze(unsignedSequence(members.shape, `${what}.shape`)),
  };
}

// The bytes of a buffer source: a view of its memory, not a copy.
export function bytesOf(source: unknown, what: string): Uint8Array {
  if (ArrayBuffer.isView(source)) {
    return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  }
  const tag = Object.prototype.toString.call(source);
  if (tag !== '[object ArrayBuffer]' && tag !== '[object SharedArrayBuffer]') {
    fail(what, 'a buffer or a view of one', source);
  }
  return new Uint8Array(source as ArrayBuffer);
}

// The bytes of a buffer source that must hold the elements of a tensor.
export function bytesFor(expected: Descriptor, source: unknown, what: string): Uint8Array {
  const bytes = bytesOf(source, what);
  const length = byteLengthOf(expected);
  if (bytes.byteLength !== length) fail(what, `${length} bytes`, bytes.byteLength);
  if (ArrayBuffer.isView(source) && !matches(source, expected.dataType)) {
    fail(what, `elements of ${expected.dataType}`, source.constructor.name);
  }
  return bytes;
}
