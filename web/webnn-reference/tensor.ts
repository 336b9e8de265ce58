// MLTensor.
import type {ContextState} from './context.js';
import type {Descriptor, MLOperandDataType, Shape} from './elements.js';
import {illegalConstructor, Slots} from './slots.js';

export interface MLOperandDescriptor {
  dataType: MLOperandDataType;
  shape: Iterable<number>;
}

export interface MLTensorDescriptor extends MLOperandDescriptor {
  readable?: boolean;
  writable?: boolean;
}

export interface TensorState {
  readonly context: ContextState;
  readonly descriptor: Descriptor;
  readonly readable: boolean;
  readonly writable: boolean;
  readonly constant: boolean;
  isDestroyed: boolean;
  // Set from the step of the timeline that creates them to the one that releases them.
  bytes?: Uint8Array;
  // Rejects the pending reads.
  readonly pendingReads: Set<() => void>;
}

export const tensors = new Slots<MLTensor, TensorState>('MLTensor');

// A lost context has destroyed all its tensors.
export function isGone(tensor: TensorState): boolean {
  return tensor.isDestroyed || tensor.context.isLost;
}

export class MLTensor {
  constructor() {
    illegalConstructor();
  }

  get dataType(): MLOperandDataType {
    return tensors.of(this, 'this').descriptor.dataType;
  }

  get shape(): Shape {
    return tensors.of(this, 'this').descriptor.shape;
  }

  get readable(): boolean {
    return tensors.of(this, 'this').readable;
  }

  get writable(): boolean {
    return tensors.of(this, 'this').writable;
  }

  get constant(): boolean {
    return tensors.of(this, 'this').constant;
  }

  destroy(): void {
    const tensor = tensors.of(this, 'this');
    if (tensor.isDestroyed) return;
    tensor.isDestroyed = true;
    for (const reject of tensor.pendingReads) reject();
    tensor.pendingReads.clear();
    const release = () => {
      tensor.bytes = undefined;
    };
    tensor.context.timeline.enqueue({duration: 0, run: release, abort: release});
  }

  get [Symbol.toStringTag](): string {
    return 'MLTensor';
  }
}
