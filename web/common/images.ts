// Conversion between images and tensors.
import type {TensorToImageDataOptions} from './tensor-conversion.js';
import type {
  ImageFormat,
  OptionsNormalizationParameters,
  OptionsTensorLayout,
  TensorFromUrlOptions,
} from './tensor-factory.js';
import type {Tensor} from './tensor.js';

// The pixels of an ImageData, whose channels are these four, also where there is no such class.
type Pixels = Pick<ImageData, 'data' | 'width' | 'height'>;

const CHANNELS = 4;

// Which of them a tensor has, in its order.
const FORMATS: Record<ImageFormat, readonly number[]> = {
  RGB: [0, 1, 2],
  RGBA: [0, 1, 2, 3],
  BGR: [2, 1, 0],
  RBG: [0, 2, 1],
};

const LARGEST = 255;

function channelsOf(format: ImageFormat): readonly number[] {
  if (Object.hasOwn(FORMATS, format)) return FORMATS[format];
  throw new TypeError(
    `format: expected one of ${Object.keys(FORMATS).join(', ')}, got '${String(format)}'`,
  );
}

// The number for each channel.
function perChannel(
  name: string,
  given: number | readonly number[] | undefined,
  missing: number,
): number[] {
  const values = typeof given === 'object' ? given : [0, 1, 2, 3].map(() => given ?? missing);
  if (!Array.isArray(values) || values.length < 3 || values.some((v) => typeof v !== 'number')) {
    throw new TypeError(`norm.${name}: expected a number, or one for each of 3 or 4 channels`);
  }
  return [...values, missing].slice(0, CHANNELS);
}

function normalization(
  {norm = {}}: OptionsNormalizationParameters,
  type: Tensor.Type,
): {bias: number[]; mean: number[]} {
  return {
    bias: perChannel('bias', norm.bias, 0),
    mean: perChannel('mean', norm.mean, type === 'uint8' ? 1 : LARGEST),
  };
}

// The distance in an image's tensor from one pixel to the next, and from one channel to the next.
function strides(
  {tensorLayout = 'NCHW'}: OptionsTensorLayout,
  pixels: number,
  channels: number,
): {pixel: number; channel: number; isNHWC: boolean} {
  if (tensorLayout === 'NHWC') return {pixel: channels, channel: 1, isNHWC: true};
  if (tensorLayout === 'NCHW') return {pixel: 1, channel: pixels, isNHWC: false};
  throw new TypeError(`tensorLayout: expected NCHW or NHWC, got '${String(tensorLayout)}'`);
}

// ---- from images ----

function isPixels(source: unknown): source is Pixels {
  const {data, width, height} = Object(source) as Partial<Pixels>;
  return data?.length !== undefined && data.length === CHANNELS * width! * height!;
}

function isOf<Class>(name: string, value: unknown): value is Class {
  const found = (globalThis as Record<string, unknown>)[name];
  return typeof found === 'function' && value instanceof found;
}

// An image that a canvas can draw.
type Drawable = HTMLImageElement | ImageBitmap | OffscreenCanvas;

async function loadImage(address: string): Promise<Drawable> {
  if (typeof Image !== 'undefined') {
    const image = new Image();
    image.crossOrigin = 'anonymous';
    image.src = address;
    await image.decode().catch((error) => {
      throw new Error(`fromImage: cannot load ${address.slice(0, 100)}: ${error.message}`);
    });
    return image;
  }
  if (typeof createImageBitmap === 'undefined') {
    throw new Error('fromImage: images can be decoded only in a browser; pass an ImageData here');
  }
  const response = await fetch(address);
  if (!response.ok) throw new Error(`fromImage: cannot load ${address}: ${response.status}`);
  return createImageBitmap(await response.blob());
}

function newCanvas(width: number, height: number): OffscreenCanvas {
  if (typeof OffscreenCanvas !== 'undefined') return new OffscreenCanvas(width, height);
  throw new Error('fromImage: only a browser can resize images and read their pixels');
}

function draw(image: Drawable, width: number, height: number): Pixels {
  const context = newCanvas(width, height).getContext('2d')!;
  context.drawImage(image, 0, 0, width, height);
  return context.getImageData(0, 0, width, height);
}

function canvasWith(pixels: Pixels): OffscreenCanvas {
  const canvas = newCanvas(pixels.width, pixels.height);
  canvas.getContext('2d')!.putImageData(pixels as ImageData, 0, 0);
  return canvas;
}

async function pixelsOf(source: unknown, options: TensorFromUrlOptions): Promise<Pixels> {
  if (isPixels(source)) {
    const {resizedWidth = source.width, resizedHeight = source.height} = options;
    const isSame = resizedWidth === source.width && resizedHeight === source.height;
    return isSame ? source : draw(canvasWith(source), resizedWidth, resizedHeight);
  }
  let image: Drawable;
  if (typeof source === 'string') image = await loadImage(source);
  else if (isOf<HTMLImageElement>('HTMLImageElement', source)) {
    await source.decode();
    image = source;
  } else if (isOf<ImageBitmap>('ImageBitmap', source)) image = source;
  else {
    throw new TypeError(
      'fromImage: expected an ImageData, an HTMLImageElement, an ImageBitmap or an address',
    );
  }
  const isAddress = typeof source === 'string';
  const {width = image.width, height = image.height} = isAddress ? options : {};
  const {resizedWidth = width, resizedHeight = height} = options;
  return draw(image, resizedWidth, resizedHeight);
}

// What the constructor of tensors takes.
export interface ImageTensor {
  type: 'float32' | 'uint8';
  data: Float32Array | Uint8Array;
  dims: number[];
}

export async function tensorFromImage(
  source: unknown,
  options: TensorFromUrlOptions = {},
): Promise<ImageTensor> {
  const {dataType: type = 'float32', tensorFormat = 'RGB'} = options;
  if (type !== 'float32' && type !== 'uint8') {
    throw new TypeError(`dataType: expected float32 or uint8, got '${String(type)}'`);
  }
  const channels = channelsOf(tensorFormat);
  const {bias, mean} = normalization(options, type);
  const {data: pixels, width, height} = await pixelsOf(source, options);
  const size = width * height;
  const {pixel, channel, isNHWC} = strides(options, size, channels.length);
  // What is no number from 0 to 255 is clamped and rounded.
  const data =
    type === 'float32'
      ? new Float32Array(size * channels.length)
      : new Uint8ClampedArray(size * channels.length);
  channels.forEach((from, to) => {
    for (let i = 0; i < size; ++i) {
      data[i * pixel + to * channel] = (pixels[i * CHANNELS + from] + bias[from]) / mean[from];
    }
  });
  return {
    type,
    data: data instanceof Float32Array ? data : new Uint8Array(data.buffer),
    dims: isNHWC ? [1, height, width, channels.length] : [1, channels.length, height, width],
  };
}

// ---- to images ----

type Source = Pick<Tensor, 'type' | 'dims' | 'data'>;

// The pixels of a tensor [1, channels, height, width] or [channels, height, width], in this order
// or that of the layout.
function pixelsIn(tensor: Source, options: TensorToImageDataOptions): Pixels {
  const {format = 'RGB'} = options;
  const channels = channelsOf(format);
  const isBatch = tensor.dims.length === 4;
  const dims = isBatch ? tensor.dims.slice(1) : tensor.dims;
  if (dims.length !== 3 || (isBatch && tensor.dims[0] !== 1) || tensor.type === 'string') {
    throw new TypeError(`expected the tensor of one image, got ${tensor.type} [${tensor.dims}]`);
  }
  const {isNHWC} = strides(options, 0, 0);
  const [height, width, count] = isNHWC ? dims : [dims[1], dims[2], dims[0]];
  if (count < channels.length) {
    throw new TypeError(
      `format: ${format} has ${channels.length} channels, the tensor [${tensor.dims}] has ${count}`,
    );
  }
  const {bias, mean} = normalization(options, tensor.type);
  const size = width * height;
  const {pixel, channel} = strides(options, size, count);
  const elements = tensor.data as Float32Array;
  const data = new Uint8ClampedArray(CHANNELS * size).fill(LARGEST);
  channels.forEach((to, from) => {
    for (let i = 0; i < size; ++i) {
      const element = Number(elements[i * pixel + from * channel]);
      data[i * CHANNELS + to] = (element - bias[to]) * mean[to];
    }
  });
  return {data, width, height};
}

export function imageDataOf(tensor: Source, options: TensorToImageDataOptions = {}): ImageData {
  const pixels = pixelsIn(tensor, options);
  if (typeof ImageData === 'undefined') return {...pixels, colorSpace: 'srgb'} as ImageData;
  return new ImageData(pixels.data as Uint8ClampedArray<ArrayBuffer>, pixels.width, pixels.height);
}

export function imageUrlOf(tensor: Source, options: TensorToImageDataOptions = {}): string {
  const image = imageDataOf(tensor, options);
  if (typeof document === 'undefined') {
    throw new Error('toDataURL: only a page can encode an image; use toImageData() here');
  }
  const canvas = document.createElement('canvas');
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext('2d')!.putImageData(image, 0, 0);
  return canvas.toDataURL();
}
