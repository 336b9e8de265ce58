// Transfers of data between memory and MLTensors. The functions are called in the order in which
// the transfers take effect, because a context handles one after another.
import type {Counters} from '../common/counters.js';
import type {NumericType} from '../common/tensor.js';
import type {Elements, MLTensor} from './api.js';
import {byteLengthOf, convertIntegers} from './data-types.js';
import type {Device} from './device.js';

function isShared({buffer}: Elements): boolean {
  return !(buffer instanceof ArrayBuffer);
}

function bytesOf({buffer, byteOffset, byteLength}: Elements): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

// The data type and shape of a tensor, if they are not those of the core.
export interface Conversion {
  readonly coreType: NumericType;
  // The name of the value, for messages.
  readonly what: string;
}

export class Transfer {
  constructor(
    readonly device: Device,
    readonly counters: Counters,
  ) {}

  // From memory to a tensor.
  write(tensor: MLTensor, data: Elements, conversion?: Conversion): void {
    const elements =
      conversion === undefined
        ? data
        : convertIntegers(data, conversion.coreType, tensor.dataType, conversion.what);
    this.#write(tensor, elements);
    this.counters.add('writes');
    this.counters.add('writeBytes', elements.byteLength);
  }

  // From a tensor to memory of an ArrayBuffer, which must not move meanwhile.
  async read(tensor: MLTensor, into: Elements, conversion?: Conversion): Promise<void> {
    this.#countRead(tensor);
    if (conversion === undefined && !isShared(into)) {
      await this.device.context.readTensor(tensor, into);
    } else {
      copyTo(into, await this.device.context.readTensor(tensor), tensor, conversion);
    }
  }

  // From a tensor to the module's memory, which is shared with threads or may move while it grows.
  // `view` returns it.
  async readToModule(
    tensor: MLTensor,
    view: () => Uint8Array,
    conversion?: Conversion,
  ): Promise<void> {
    this.#countRead(tensor);
    const {context} = this.device;
    if (conversion === undefined && (await this.#readDirectly(tensor, view()))) return;
    copyTo(view(), await context.readTensor(tensor), tensor, conversion);
  }

  // Whether the platform wrote to the view.
  async #readDirectly(tensor: MLTensor, into: Uint8Array): Promise<boolean> {
    const {device} = this;
    const wasShared = isShared(into);
    if (wasShared && device.takesSharedViews === false) return false;
    try {
      await device.context.readTensor(tensor, into);
      if (wasShared) device.takesSharedViews = true;
      return into.byteLength > 0; // otherwise memory moved
    } catch (error) {
      // The read was refused, or memory moved. If it was neither, the next attempt fails, too.
      if (!(error instanceof TypeError)) throw error;
      if (wasShared) device.takesSharedViews = false;
      return false;
    }
  }

  #write(tensor: MLTensor, elements: Elements): void {
    const {device} = this;
    if (!isShared(elements)) return device.context.writeTensor(tensor, elements);
    if (device.takesSharedViews !== false) {
      try {
        device.context.writeTensor(tensor, elements);
        return;
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
      }
    }
    device.context.writeTensor(tensor, bytesOf(elements).slice());
    device.takesSharedViews = false;
  }

  #countRead(tensor: MLTensor): void {
    this.counters.add('reads');
    this.counters.add('readBytes', byteLengthOf(tensor));
  }
}

function copyTo(
  into: Elements,
  bytes: ArrayBuffer,
  tensor: MLTensor,
  conversion: Conversion | undefined,
): void {
  const source = new Uint8Array(bytes);
  if (conversion === undefined) return bytesOf(into).set(source);
  const {coreType, what} = conversion;
  bytesOf(into).set(bytesOf(convertIntegers(source, tensor.dataType, coreType, what)));
}
