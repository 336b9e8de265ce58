// The functions that make images from tensors, and their options.
import type {
  OptionsFormat,
  OptionsNormalizationParameters,
  OptionsTensorLayout,
} from './tensor-factory.js';

export interface TensorToDataUrlOptions
  extends OptionsTensorLayout,
    OptionsFormat,
    OptionsNormalizationParameters {}

export interface TensorToImageDataOptions
  extends OptionsTensorLayout,
    OptionsFormat,
    OptionsNormalizationParameters {}

// The defaults are the format 'RGB' and the layout 'NCHW'.
export interface ConversionUtils {
  // A PNG file as a data URL. Only pages can make it.
  toDataURL(options?: TensorToDataUrlOptions): string;
  toImageData(options?: TensorToImageDataOptions): ImageData;
}
