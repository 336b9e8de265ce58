// The part of the WebNN API that the provider uses, from the draft of the Web Machine Learning
// group. Objects of any implementation can be used.

export type MLOperandDataType =
  | 'float32'
  | 'float16'
  | 'int64'
  | 'uint64'
  | 'int32'
  | 'uint32'
  | 'int8'
  | 'uint8'
  | 'int4'
  | 'uint4';

export interface MLOperandDescriptor {
  readonly dataType: MLOperandDataType;
  readonly shape: readonly number[];
}

export interface MLTensorDescriptor extends MLOperandDescriptor {
  readonly readable: boolean;
  readonly writable: boolean;
}

export interface MLTensor extends MLTensorDescriptor {
  destroy(): void;
}

export interface MLGraph {
  destroy(): void;
}

export type MLOperand = object;

export interface MLTensorLimits {
  readonly dataTypes: readonly string[];
  // Older implementations do not have it.
  readonly rankRange?: {readonly min: number; readonly max: number};
}

export interface MLOpSupportLimits {
  readonly input: MLTensorLimits;
  readonly output: MLTensorLimits;
}

export type Elements = ArrayBufferView<ArrayBufferLike>;

export interface MLContext {
  readonly lost: Promise<{readonly message: string}>;
  opSupportLimits(): MLOpSupportLimits;
  createTensor(descriptor: MLTensorDescriptor): Promise<MLTensor>;
  writeTensor(tensor: MLTensor, data: Elements): void;
  readTensor(tensor: MLTensor): Promise<ArrayBuffer>;
  readTensor(tensor: MLTensor, data: Elements): Promise<void>;
  dispatch(
    graph: MLGraph,
    inputs: Readonly<Record<string, MLTensor>>,
    outputs: Readonly<Record<string, MLTensor>>,
  ): void;
  destroy(): void;
}

export interface MLGraphBuilder {
  input(name: string, descriptor: MLOperandDescriptor): MLOperand;
  constant(descriptor: MLOperandDescriptor, data: Elements): MLOperand;
  identity(operand: MLOperand): MLOperand;
  build(outputs: Readonly<Record<string, MLOperand>>): Promise<MLGraph>;
}

export type MLGraphBuilderClass = new (context: MLContext) => MLGraphBuilder;

export interface ML {
  createContext(options?: object): Promise<MLContext>;
}
