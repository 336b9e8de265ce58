// The functions that make tensors from images and from data on devices, and their options.
import type {Tensor, TypedTensor} from './tensor.js';

export type ImageFormat = 'RGB' | 'RGBA' | 'BGR' | 'RBG';
export type ImageTensorLayout = 'NHWC' | 'NCHW';

interface CommonParameters<Type> extends Pick<Tensor, 'dims'> {
  readonly type: Type;
}

// Data on a device: without `download` it cannot be read, without `dispose` it stays the caller's.
interface DeviceParameters<Type extends Tensor.Type> {
  download?(): Promise<Tensor.DataTypeMap[Type]>;
  dispose?(): void;
}

export interface CpuPinnedConstructorParameters<
  Type extends Tensor.CpuPinnedDataTypes = Tensor.CpuPinnedDataTypes,
> extends CommonParameters<Type> {
  readonly location: 'cpu-pinned';
  readonly data: Tensor.DataTypeMap[Type];
}

export interface TextureConstructorParameters<
  Type extends Tensor.TextureDataTypes = Tensor.TextureDataTypes,
> extends CommonParameters<Type>, DeviceParameters<Type> {
  readonly location: 'texture';
  readonly texture: Tensor.TextureType;
}

export interface GpuBufferConstructorParameters<
  Type extends Tensor.GpuBufferDataTypes = Tensor.GpuBufferDataTypes,
> extends CommonParameters<Type>, DeviceParameters<Type> {
  readonly location: 'gpu-buffer';
  readonly gpuBuffer: Tensor.GpuBufferType;
}

export interface MLTensorConstructorParameters<
  Type extends Tensor.MLTensorDataTypes = Tensor.MLTensorDataTypes,
> extends CommonParameters<Type>, DeviceParameters<Type> {
  readonly location: 'ml-tensor';
  readonly mlTensor: Tensor.MLTensorType;
}

export interface OptionsFormat {
  // The channels of the image or the texture.
  format?: ImageFormat;
}

export interface OptionsTensorFormat {
  // The channels of the tensor, in their order. Default: 'RGB'.
  tensorFormat?: ImageFormat;
}

export interface OptionsTensorDataType {
  // Default: 'float32'.
  dataType?: 'float32' | 'uint8';
}

export interface OptionsTensorLayout {
  // The order of the tensor's dimensions. Default: 'NCHW'.
  tensorLayout?: ImageTensorLayout;
}

export interface OptionsDimensions {
  height?: number;
  width?: number;
}

export interface OptionResizedDimensions {
  // The size of the tensor's image. Default: that of the source.
  resizedHeight?: number;
  resizedWidth?: number;
}

// A number for all channels, or one for each: red, green, blue, alpha.
type PerChannel = number | [number, number, number] | [number, number, number, number];

export interface OptionsNormalizationParameters {
  // An element of the tensor is (pixel + bias) / mean with a pixel from 0 to 255, and back it is
  // (element - bias) * mean. Default of `bias`: 0. Default of `mean`: 255, but 1 for uint8.
  norm?: {bias?: PerChannel; mean?: PerChannel};
}

export interface TensorFromImageDataOptions
  extends OptionResizedDimensions,
    OptionsTensorFormat,
    OptionsTensorLayout,
    OptionsTensorDataType,
    OptionsNormalizationParameters {}

export interface TensorFromImageElementOptions extends TensorFromImageDataOptions {}

export interface TensorFromImageBitmapOptions extends TensorFromImageDataOptions {}

export interface TensorFromUrlOptions extends OptionsDimensions, TensorFromImageDataOptions {}

export interface TensorFromTextureOptions<Type extends Tensor.TextureDataTypes>
  extends Required<OptionsDimensions>,
    OptionsFormat,
    DeviceParameters<Type> {}

export interface TensorFromGpuBufferOptions<Type extends Tensor.GpuBufferDataTypes>
  extends Pick<Tensor, 'dims'>,
    DeviceParameters<Type> {
  // Default: 'float32'.
  dataType?: Type;
}

export interface TensorFromMLTensorOptions<Type extends Tensor.MLTensorDataTypes>
  extends Pick<Tensor, 'dims'>,
    DeviceParameters<Type> {
  // Default: 'float32'.
  dataType?: Type;
}

export interface TensorFactory {
  // A tensor [1, channels, height, width] from an image. If the image is resized, the browser does
  // it.
  fromImage(
    imageData: ImageData,
    options?: TensorFromImageDataOptions,
  ): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>>;
  fromImage(
    imageElement: HTMLImageElement,
    options?: TensorFromImageElementOptions,
  ): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>>;
  // `width` and `height` are the size of the image if it has none itself.
  fromImage(
    urlSource: string,
    options?: TensorFromUrlOptions,
  ): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>>;
  fromImage(
    bitmap: ImageBitmap,
    options?: TensorFromImageBitmapOptions,
  ): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>>;

  // A tensor [1, height, width, 4].
  fromTexture<Type extends Tensor.TextureDataTypes = 'float32'>(
    texture: Tensor.TextureType,
    options: TensorFromTextureOptions<Type>,
  ): TypedTensor<'float32'>;

  fromGpuBuffer<Type extends Tensor.GpuBufferDataTypes>(
    buffer: Tensor.GpuBufferType,
    options: TensorFromGpuBufferOptions<Type>,
  ): TypedTensor<Type>;

  fromMLTensor<Type extends Tensor.MLTensorDataTypes>(
    tensor: Tensor.MLTensorType,
    options: TensorFromMLTensorOptions<Type>,
  ): TypedTensor<Type>;

  // A tensor over memory that the application keeps. Memory of the module is not copied by runs.
  fromPinnedBuffer<Type extends Exclude<Tensor.Type, 'string'>>(
    type: Type,
    buffer: Tensor.DataTypeMap[Type],
    dims?: readonly number[],
  ): TypedTensor<Type>;
}
