// Tensor: a typed array with a shape, as applications see it.
import type {GlobalType} from './global-type.js';
import {TensorObject} from './tensor-class.js';
import type {ConversionUtils} from './tensor-conversion.js';
import type {TensorFactory} from './tensor-factory.js';

export {arrayOver, isOnCpu, type NumericData, type NumericType} from './tensor-class.js';

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
    float16: Uint16Array; // or Float16Array, which TypeScript's libraries may not declare
    float64: Float64Array;
    uint32: Uint32Array;
    uint64: BigUint64Array;
    uint4: Uint8Array;
    int4: Int8Array;
  }

  interface ElementTypeMap {
    float32: number;
    uint8: number;
    int8: number;
    uint16: number;
    int16: number;
    int32: number;
    int64: bigint;
    string: string;
    bool: boolean;
    float16: number;
    float64: number;
    uint32: number;
    uint64: bigint;
    uint4: number;
    int4: number;
  }

  type Type = keyof DataTypeMap;
  type DataType = DataTypeMap[Type];
  type ElementType = ElementTypeMap[Type];

  type DataLocation = 'none' | 'cpu' | 'cpu-pinned' | 'texture' | 'gpu-buffer' | 'ml-tensor';

  type TextureType = WebGLTexture;
  type GpuBufferType = GlobalType<
    'GPUBuffer',
    {size: number; mapState: 'unmapped' | 'pending' | 'mapped'}
  >;
  type MLTensorType = GlobalType<'MLTensor', {destroy(): void}>;

  // The types of tensors at each location.
  type CpuPinnedDataTypes = Exclude<Type, 'string'>;
  type TextureDataTypes = 'float32';
  type GpuBufferDataTypes =
    | 'float32'
    | 'float16'
    | 'int32'
    | 'int64'
    | 'uint32'
    | 'uint8'
    | 'bool';
  type MLTensorDataTypes =
    | 'float32'
    | 'float16'
    | 'int8'
    | 'uint8'
    | 'int32'
    | 'uint32'
    | 'int64'
    | 'uint64'
    | 'bool'
    | 'uint4'
    | 'int4';
}

interface TensorMembers<Type extends Tensor.Type> {
  readonly type: Type;
  readonly dims: readonly number[];
  // Error: the data is elsewhere, or the tensor is disposed. The same holds for the handles below.
  readonly data: Tensor.DataTypeMap[Type];
  readonly location: Tensor.DataLocation;
  readonly texture: Tensor.TextureType;
  readonly gpuBuffer: Tensor.GpuBufferType;
  readonly mlTensor: Tensor.MLTensorType;
  // The number of elements.
  readonly size: number;
  // Data on a device is downloaded; the tensor is then on the CPU. With `releaseData` its memory on
  // the device is given back, otherwise dispose() does that.
  getData(releaseData?: boolean): Promise<Tensor.DataTypeMap[Type]>;
  dispose(): void;
  // A tensor with the same data and other dims.
  reshape(dims: readonly number[]): TypedTensor<Type>;
}

export interface TypedTensor<Type extends Tensor.Type>
  extends TensorMembers<Type>,
    ConversionUtils {}
export interface Tensor extends TensorMembers<Tensor.Type>, ConversionUtils {}

// The data is shared if it is a typed array of the type's class. Without dims the tensor has one
// dimension.
export interface TensorConstructor extends TensorFactory {
  new (
    type: 'string',
    data: Tensor.DataTypeMap['string'] | readonly string[],
    dims?: readonly number[],
  ): TypedTensor<'string'>;
  new (
    type: 'bool',
    data: Tensor.DataTypeMap['bool'] | readonly boolean[],
    dims?: readonly number[],
  ): TypedTensor<'bool'>;
  new (type: 'uint8', data: Uint8ClampedArray, dims?: readonly number[]): TypedTensor<'uint8'>;
  new <Type extends 'uint64' | 'int64'>(
    type: Type,
    data: Tensor.DataTypeMap[Type] | readonly bigint[] | readonly number[],
    dims?: readonly number[],
  ): TypedTensor<Type>;
  new <Type extends Exclude<Tensor.Type, 'string' | 'bool' | 'uint64' | 'int64'>>(
    type: Type,
    data: Tensor.DataTypeMap[Type] | readonly number[],
    dims?: readonly number[],
  ): TypedTensor<Type>;

  // The type is that of the array.
  new (data: Float32Array, dims?: readonly number[]): TypedTensor<'float32'>;
  new (data: Int8Array, dims?: readonly number[]): TypedTensor<'int8'>;
  new (data: Uint8Array, dims?: readonly number[]): TypedTensor<'uint8'>;
  new (data: Uint8ClampedArray, dims?: readonly number[]): TypedTensor<'uint8'>;
  new (data: Uint16Array, dims?: readonly number[]): TypedTensor<'uint16'>;
  new (data: Int16Array, dims?: readonly number[]): TypedTensor<'int16'>;
  new (data: Int32Array, dims?: readonly number[]): TypedTensor<'int32'>;
  new (data: BigInt64Array, dims?: readonly number[]): TypedTensor<'int64'>;
  new (data: readonly string[], dims?: readonly number[]): TypedTensor<'string'>;
  new (data: readonly boolean[], dims?: readonly number[]): TypedTensor<'bool'>;
  new (data: Float64Array, dims?: readonly number[]): TypedTensor<'float64'>;
  new (data: Uint32Array, dims?: readonly number[]): TypedTensor<'uint32'>;
  new (data: BigUint64Array, dims?: readonly number[]): TypedTensor<'uint64'>;

  new (
    type: Tensor.Type,
    data:
      | Tensor.DataType
      | readonly number[]
      | readonly string[]
      | readonly bigint[]
      | readonly boolean[],
    dims?: readonly number[],
  ): Tensor;
  new (data: Tensor.DataType, dims?: readonly number[]): Tensor;
}

export const Tensor = TensorObject as unknown as TensorConstructor;
