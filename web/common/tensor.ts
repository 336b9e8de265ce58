// Tensor: a typed array with a shape.

type Float16Data = Uint16Array;

const float16Array = (globalThis as {Float16Array?: new (buffer: ArrayBufferLike) => Float16Data})
  .Float16Array;

// The array class of each element type except strings. Two elements of four bits share a byte; the
// first is in the lower half. `float16` has the platform's class if there is one.
const ARRAYS = {
  float32: Float32Array,
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  bool: Uint8Array,
  float16: (float16Array ?? Uint16Array) as typeof Uint16Array,
  float64: Float64Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  uint4: Uint8Array,
  int4: Int8Array,
};

// The default type for an array of each class.
const INFERRED: ReadonlyMap<unknown, Tensor.Type> = new Map<unknown, Tensor.Type>([
  [Float32Array, 'float32'],
  [Uint8Array, 'uint8'],
  [Uint8ClampedArray, 'uint8'],
  [Int8Array, 'int8'],
  [Uint16Array, 'uint16'],
  [Int16Array, 'int16'],
  [Int32Array, 'int32'],
  [BigInt64Array, 'int64'],
  [Float64Array, 'float64'],
  [Uint32Array, 'uint32'],
  [BigUint64Array, 'uint64'],
  ...(float16Array === undefined ? [] : [[float16Array, 'float16'] as [unknown, Tensor.Type]]),
]);

export type NumericType = keyof typeof ARRAYS;
export type NumericData = Tensor.DataTypeMap[NumericType];
type PlainData = readonly number[] | readonly bigint[] | readonly boolean[] | readonly string[];

// A tensor's data in a piece of memory, which it shares: all of it, or `length` elements.
export function arrayOver(
  type: NumericType,
  buffer: ArrayBufferLike,
  byteOffset = 0,
  length?: number,
): NumericData {
  type Class = new (buffer: ArrayBufferLike, byteOffset: number, length?: number) => NumericData;
  return new (ARRAYS[type] as Class)(buffer, byteOffset, length);
}

// The number of elements of a tensor with these dimensions.
function sizeOf(dims: readonly number[]): number {
  let size = 1;
  dims.forEach((dim, i) => {
    if (typeof dim !== 'number' || !Number.isSafeInteger(dim)) {
      throw new TypeError(`dims[${i}]: expected an integer, got ${String(dim)}`);
    }
    if (dim < 0) throw new RangeError(`dims[${i}]: expected 0 or more, got ${dim}`);
    size *= dim;
  });
  return size;
}

// The length of the array of `size` elements.
function lengthOf(type: Tensor.Type, size: number): number {
  return type === 'uint4' || type === 'int4' ? Math.ceil(size / 2) : size;
}

// Error: the array of a tensor on the CPU has lost elements, because its buffer was transferred or
// resized. `what` names the tensor.
export function checkLength(what: string, tensor: Tensor): void {
  if (tensor.location !== 'cpu') return;
  const {type, dims, size, data} = tensor;
  const length = lengthOf(type, size);
  if (data.length === length) return;
  throw new TypeError(
    `${what}: dims [${dims}] need ${length} elements, got ${data.length}: ` +
      'its array was transferred or resized',
  );
}

function inferType(data: unknown): Tensor.Type {
  if (Array.isArray(data)) {
    if (typeof data[0] === 'string') return 'string';
    if (typeof data[0] === 'boolean') return 'bool';
    throw new TypeError(
      'the type of an array is known of strings and booleans alone: name it in front of the data',
    );
  }
  const type = INFERRED.get(Object(data).constructor);
  if (type === undefined) throw new TypeError(`expected a typed array, got ${typeof data}`);
  return type;
}

function convert(type: Tensor.Type, data: unknown): Tensor.DataType {
  if (type === 'string') {
    if (Array.isArray(data)) return data as string[];
    throw new TypeError("a tensor of type 'string' has an array of strings");
  }
  const wanted = ARRAYS[type];
  if (wanted === undefined) throw new TypeError(`there is no tensor type '${String(type)}'`);
  if (data instanceof wanted) return data;
  if (type === 'uint8' && data instanceof Uint8ClampedArray) return Uint8Array.from(data);
  if (type === 'float16' && data instanceof Uint16Array) {
    return arrayOver(type, data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
  }
  if (!Array.isArray(data) || type === 'uint4' || type === 'int4') {
    throw new TypeError(`a tensor of type '${type}' has its data in a ${wanted.name}`);
  }
  if (type === 'int64') return BigInt64Array.from(data, BigInt);
  if (type === 'uint64') return BigUint64Array.from(data, BigInt);
  if (type === 'float16' && float16Array === undefined) {
    throw new TypeError("here a tensor of type 'float16' has its bits in a Uint16Array");
  }
  return (ARRAYS[type] as typeof Float32Array).from(data) as Tensor.DataType;
}

// The types of which a WebNN context has tensors; bool is uint8 there.
const ML_TENSOR_TYPES: readonly Tensor.Type[] = [
  'float32',
  'float16',
  'int8',
  'uint8',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'bool',
  'int4',
  'uint4',
];

// Data in an MLTensor, and what a tensor needs to know about it.
class OnDevice {
  readonly type: Tensor.Type;
  readonly dims: readonly number[];
  readonly download: (() => Promise<Tensor.DataType>) | undefined;
  dispose: (() => void) | undefined;

  constructor(
    readonly mlTensor: Tensor.MLTensorType,
    options: Tensor.FromMLTensorOptions,
  ) {
    if (typeof mlTensor !== 'object' || mlTensor === null) {
      throw new TypeError(`mlTensor: expected an MLTensor, got ${String(mlTensor)}`);
    }
    this.type = options.dataType ?? 'float32';
    if (!ML_TENSOR_TYPES.includes(this.type)) {
      throw new TypeError(
        `dataType: expected one of ${ML_TENSOR_TYPES.join(', ')}, got ${String(this.type)}`,
      );
    }
    if (!Array.isArray(options.dims)) throw new TypeError('dims: expected an array of numbers');
    this.dims = options.dims;
    this.download = options.download;
    this.dispose = options.dispose;
  }
}

export class Tensor {
  readonly type: Tensor.Type;
  readonly dims: readonly number[];
  // The number of elements.
  readonly size: number;
  #data: Tensor.DataType | undefined;
  // Kept after a download, until the device memory is given back.
  #device: OnDevice | undefined;
  #isDownloading = false;

  // The data is shared if it is a typed array of the type's class. Without dims the tensor has one
  // dimension.
  constructor(type: Tensor.Type, data: Tensor.DataType | PlainData, dims?: readonly number[]);
  constructor(
    data: Tensor.DataType | Uint8ClampedArray | readonly boolean[],
    dims?: readonly number[],
  );
  constructor(first: unknown, second?: unknown, third?: unknown) {
    if (first instanceof OnDevice) {
      this.type = first.type;
      this.dims = first.dims;
      this.size = sizeOf(first.dims);
      this.#device = first;
      return;
    }
    const isNamed = typeof first === 'string';
    const type = isNamed ? (first as Tensor.Type) : inferType(first);
    const data = convert(type, isNamed ? second : first);
    const dims = (isNamed ? third : second) ?? [data.length];
    if (!Array.isArray(dims)) throw new TypeError('dims: expected an array of numbers');
    const size = sizeOf(dims);
    const length = lengthOf(type, size);
    if (data.length !== length) {
      throw new RangeError(`data: dims [${dims}] need ${length} elements, got ${data.length}`);
    }
    this.type = type;
    this.dims = dims;
    this.size = size;
    this.#data = data;
  }

  // A tensor whose data is in an MLTensor. Without `download` it cannot be read. Without `dispose`
  // the caller keeps the MLTensor.
  static fromMLTensor(
    mlTensor: Tensor.MLTensorType,
    options: Tensor.FromMLTensorOptions,
  ): Tensor {
    return new Tensor(new OnDevice(mlTensor, options) as never);
  }

  get data(): Tensor.DataType {
    if (this.#data !== undefined) return this.#data;
    throw this.#isElsewhere('call getData() for it');
  }

  get location(): Tensor.DataLocation {
    if (this.#data !== undefined) return 'cpu';
    return this.#device === undefined ? 'none' : 'ml-tensor';
  }

  get mlTensor(): Tensor.MLTensorType {
    if (this.location === 'ml-tensor') return this.#device!.mlTensor;
    throw this.#isElsewhere('it is no MLTensor');
  }

  get gpuBuffer(): never {
    throw this.#isElsewhere('it is no GPUBuffer');
  }

  get texture(): never {
    throw this.#isElsewhere('it is no WebGLTexture');
  }

  // Data on a device is downloaded; the tensor is then on the CPU. With `release` its memory on the
  // device is given back, otherwise dispose() does that.
  async getData(release = false): Promise<Tensor.DataType> {
    this.#checkIdle();
    if (this.#data === undefined) {
      const download = this.#device?.download;
      if (download === undefined) throw this.#isElsewhere('the tensor was made without download');
      this.#isDownloading = true;
      try {
        this.#data = await download();
      } finally {
        this.#isDownloading = false;
      }
    }
    if (release) this.#releaseDevice();
    return this.#data;
  }

  dispose(): void {
    this.#checkIdle();
    this.#data = undefined;
    this.#releaseDevice();
  }

  // A tensor with the same data and other dims.
  reshape(dims: readonly number[]): Tensor {
    if (this.#device?.dispose !== undefined) {
      throw new Error('a tensor that owns memory of a device cannot be reshaped');
    }
    if (this.location !== 'ml-tensor') return new Tensor(this.type, this.data, dims);
    const {download} = this.#device!;
    const reshaped = Tensor.fromMLTensor(this.mlTensor, {dataType: this.type, dims, download});
    if (reshaped.size === this.size) return reshaped;
    throw new RangeError(`dims: [${dims}] is not of ${this.size} elements`);
  }

  #isElsewhere(advice: string): Error {
    const {location} = this;
    if (location === 'none') return new Error('the tensor is disposed');
    return new Error(`the tensor's data is at location '${location}': ${advice}`);
  }

  #checkIdle(): void {
    if (this.#isDownloading) throw new Error('the tensor is being downloaded');
  }

  #releaseDevice(): void {
    const device = this.#device;
    this.#device = undefined;
    device?.dispose?.();
  }
}

export declare namespace Tensor {
  interface DataTypeMap {
    float32: Float32Array;
    uint8: Uint8Array;
    int8: Int8Array;
    uint16: Uint16Array;
    int16: Int16Array;
    int32: Int32Array;
    int64: BigInt64Array;
    string: string[];
    bool: Uint8Array;
    float16: Uint16Array;
    float64: Float64Array;
    uint32: Uint32Array;
    uint64: BigUint64Array;
    uint4: Uint8Array;
    int4: Int8Array;
  }
  type Type = keyof DataTypeMap;
  type DataType = DataTypeMap[Type];
  type DataLocation = 'none' | 'cpu' | 'cpu-pinned' | 'texture' | 'gpu-buffer' | 'ml-tensor';

  // The part of WebNN's MLTensor that the package uses.
  interface MLTensorType {
    readonly dataType: string;
    readonly shape: readonly number[];
    destroy(): void;
  }

  interface FromMLTensorOptions {
    // Default: 'float32'.
    dataType?: Type;
    dims: readonly number[];
    download?(): Promise<DataType>;
    dispose?(): void;
  }
}
