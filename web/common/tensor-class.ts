// The class of tensors: a typed array with a shape, or data on a device with a shape.
import {imageDataOf, imageUrlOf, tensorFromImage} from './images.js';
import type {TensorToDataUrlOptions, TensorToImageDataOptions} from './tensor-conversion.js';
import type {
  CpuPinnedConstructorParameters,
  GpuBufferConstructorParameters,
  MLTensorConstructorParameters,
  TensorFromGpuBufferOptions,
  TensorFromMLTensorOptions,
  TensorFromTextureOptions,
  TensorFromUrlOptions,
  TextureConstructorParameters,
} from './tensor-factory.js';
import type {Tensor} from './tensor.js';

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

// The default type for an array of each class: the first of those above.
const INFERRED: Readonly<Record<string, Tensor.Type>> = {
  ...Object.fromEntries(
    Object.entries(ARRAYS)
      .reverse()
      .map(([type, {name}]) => [name, type as Tensor.Type]),
  ),
  Uint8ClampedArray: 'uint8',
};

// The class of an object, also of a frame's or a test runner's own.
export function classOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

// The class of a typed array; '' for all else.
function arrayClass(data: unknown): string {
  return ArrayBuffer.isView(data) ? classOf(data) : '';
}

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

// Whether a tensor's elements are in its array.
export function isOnCpu({location}: Pick<Tensor, 'location'>): boolean {
  return location === 'cpu' || location === 'cpu-pinned';
}

// Error: the array of a tensor on the CPU has lost elements, because its buffer was transferred or
// resized. `what` names the tensor.
export function checkLength(what: string, tensor: Tensor): void {
  if (!isOnCpu(tensor)) return;
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
  const type = INFERRED[arrayClass(data)];
  if (type === undefined) throw new TypeError(`expected a typed array, got ${typeof data}`);
  return type;
}

function convert(type: Tensor.Type, data: unknown): Tensor.DataType {
  if (type === 'string') {
    if (Array.isArray(data)) return data as string[];
    throw new TypeError("a tensor of type 'string' has an array of strings");
  }
  const wanted = Object.hasOwn(ARRAYS, type) ? ARRAYS[type] : undefined;
  if (wanted === undefined) throw new TypeError(`there is no tensor type '${String(type)}'`);
  const given = arrayClass(data);
  if (given === wanted.name) return data as Tensor.DataType;
  if (type === 'uint8' && given === 'Uint8ClampedArray') return Uint8Array.from(data as Uint8Array);
  if (type === 'float16' && given === 'Uint16Array') {
    const {buffer, byteOffset, byteLength} = data as Uint16Array;
    return arrayOver(type, buffer.slice(byteOffset, byteOffset + byteLength));
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

type DeviceParameters =
  | TextureConstructorParameters
  | GpuBufferConstructorParameters
  | MLTensorConstructorParameters;

const GPU_TYPES: readonly Tensor.Type[] = [
  'float32',
  'float16',
  'int32',
  'int64',
  'uint32',
  'uint8',
  'bool',
  'uint4',
  'int4',
];

// Where data on a device is, the member with its handle, and the types it may have. Bool is uint8
// in WebNN.
const DEVICES: Record<
  DeviceParameters['location'],
  {handle: string; is: string; types: readonly Tensor.Type[]}
> = {
  texture: {handle: 'texture', is: 'WebGLTexture', types: ['float32']},
  'gpu-buffer': {handle: 'gpuBuffer', is: 'GPUBuffer', types: GPU_TYPES},
  'ml-tensor': {handle: 'mlTensor', is: 'MLTensor', types: [...GPU_TYPES, 'int8', 'uint64']},
};

type DeviceLocation = keyof typeof DEVICES;

// Data on a device, and what a tensor needs to know about it.
interface OnDevice {
  readonly location: DeviceLocation;
  readonly handle: object;
  readonly download: (() => Promise<Tensor.DataType>) | undefined;
  readonly dispose: (() => void) | undefined;
}

function onDevice(parameters: DeviceParameters): OnDevice {
  const {location, type, dims, download, dispose} = parameters;
  const {handle: name, is, types} = DEVICES[location];
  const handle = (parameters as unknown as Record<string, unknown>)[name];
  if (typeof handle !== 'object' || handle === null) {
    throw new TypeError(`${name}: expected a ${is}, got ${String(handle)}`);
  }
  if (!types.includes(type)) {
    throw new TypeError(`dataType: expected one of ${types.join(', ')}, got ${String(type)}`);
  }
  if (!Array.isArray(dims)) throw new TypeError('dims: expected an array of numbers');
  return {location, handle, download, dispose};
}

type PinnedParameters = CpuPinnedConstructorParameters;

function hasLocation(value: unknown): value is PinnedParameters | DeviceParameters {
  return typeof value === 'object' && value !== null && 'location' in value;
}

// Whether a value can be used as a tensor: one of this class or of another copy of the package.
export function isTensor(value: unknown): value is Tensor {
  if (value instanceof TensorObject) return true;
  const {type, dims, location} = Object(value) as Partial<Tensor>;
  return typeof type === 'string' && Array.isArray(dims) && typeof location === 'string';
}

export class TensorObject {
  readonly type: Tensor.Type;
  readonly dims: readonly number[];
  // The number of elements.
  readonly size: number;
  #data: Tensor.DataType | undefined;
  #isPinned = false;
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
  constructor(parameters: PinnedParameters | DeviceParameters);
  constructor(first: unknown, second?: unknown, third?: unknown) {
    if (hasLocation(first)) {
      if (first.location !== 'cpu-pinned') {
        if (!Object.hasOwn(DEVICES, first.location)) {
          throw new TypeError(`location: there is no '${String(first.location)}' for a tensor`);
        }
        this.#device = onDevice(first);
        this.type = first.type;
        this.dims = first.dims;
        this.size = sizeOf(first.dims);
        return;
      }
      const pinned = first;
      [first, second, third] = [pinned.type, pinned.data, pinned.dims];
      this.#isPinned = true;
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

  static async fromImage(source: unknown, options?: TensorFromUrlOptions): Promise<Tensor> {
    const {type, data, dims} = await tensorFromImage(source, options);
    return new TensorObject(type, data, dims) as Tensor;
  }

  static fromTexture(
    texture: Tensor.TextureType,
    {width, height, download, dispose}: TensorFromTextureOptions<'float32'>,
  ): Tensor {
    const dims = [1, height, width, 4];
    return tensorOf({location: 'texture', type: 'float32', texture, dims, download, dispose});
  }

  static fromGpuBuffer(
    gpuBuffer: Tensor.GpuBufferType,
    options: TensorFromGpuBufferOptions<Tensor.GpuBufferDataTypes>,
  ): Tensor {
    const {dataType: type = 'float32', dims, download, dispose} = options;
    return tensorOf({location: 'gpu-buffer', type, gpuBuffer, dims, download, dispose});
  }

  static fromMLTensor(
    mlTensor: Tensor.MLTensorType,
    options: TensorFromMLTensorOptions<Tensor.MLTensorDataTypes>,
  ): Tensor {
    const {dataType: type = 'float32', dims, download, dispose} = options;
    return tensorOf({location: 'ml-tensor', type, mlTensor, dims, download, dispose});
  }

  static fromPinnedBuffer(
    type: Tensor.CpuPinnedDataTypes,
    buffer: Tensor.DataTypeMap[Tensor.CpuPinnedDataTypes],
    dims: readonly number[] = [buffer.length],
  ): Tensor {
    return tensorOf({location: 'cpu-pinned', type, data: buffer, dims});
  }

  get data(): Tensor.DataType {
    if (this.#data !== undefined) return this.#data;
    throw this.#isElsewhere('call getData() for it');
  }

  get location(): Tensor.DataLocation {
    if (this.#data !== undefined) return this.#isPinned ? 'cpu-pinned' : 'cpu';
    return this.#device?.location ?? 'none';
  }

  get mlTensor(): Tensor.MLTensorType {
    return this.#handleAt('ml-tensor') as Tensor.MLTensorType;
  }

  get gpuBuffer(): Tensor.GpuBufferType {
    return this.#handleAt('gpu-buffer') as Tensor.GpuBufferType;
  }

  get texture(): Tensor.TextureType {
    return this.#handleAt('texture') as Tensor.TextureType;
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
    const device = this.#device;
    if (device?.dispose !== undefined) {
      throw new Error('a tensor that owns memory of a device cannot be reshaped');
    }
    if (this.#data !== undefined || device === undefined) {
      const {type, data} = this;
      if (!this.#isPinned) return new TensorObject(type, data, dims) as Tensor;
      return tensorOf({location: 'cpu-pinned', type, data, dims} as PinnedParameters);
    }
    const {location, handle, download} = device;
    const parameters = {location, type: this.type, dims, download, [DEVICES[location].handle]: handle};
    const reshaped = tensorOf(parameters as unknown as DeviceParameters);
    if (reshaped.size === this.size) return reshaped;
    throw new RangeError(`dims: [${dims}] is not of ${this.size} elements`);
  }

  toDataURL(options?: TensorToDataUrlOptions): string {
    return imageUrlOf(this, options);
  }

  toImageData(options?: TensorToImageDataOptions): ImageData {
    return imageDataOf(this, options);
  }

  #handleAt(location: DeviceLocation): object {
    if (this.location === location) return this.#device!.handle;
    throw this.#isElsewhere(`it is no ${DEVICES[location].is}`);
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

function tensorOf(parameters: PinnedParameters | DeviceParameters): Tensor {
  return new TensorObject(parameters) as Tensor;
}
