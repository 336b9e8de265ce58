// The operators of MLGraphBuilder, with their options.
import type {MLOperandDataType} from './elements.js';
import type {MLOperand} from './operand.js';

export type MLNumber = number | bigint;
export type MLInputOperandLayout = 'nchw' | 'nhwc';
export type MLConv2dFilterOperandLayout = 'oihw' | 'hwio' | 'ohwi' | 'ihwo';
export type MLConvTranspose2dFilterOperandLayout = 'iohw' | 'hwoi' | 'ohwi';
export type MLGruWeightLayout = 'zrn' | 'rzn';
export type MLLstmWeightLayout = 'iofg' | 'ifgo';
export type MLInterpolationMode = 'nearest-neighbor' | 'linear';
export type MLPaddingMode = 'constant' | 'edge' | 'reflection';
export type MLRecurrentNetworkActivation = 'relu' | 'sigmoid' | 'tanh';
export type MLRecurrentNetworkDirection = 'forward' | 'backward' | 'both';
export type MLRoundingType = 'floor' | 'ceil';

type Sizes = Iterable<number>;

export interface MLOperatorOptions {
  label?: string;
}
export interface MLArgMinMaxOptions extends MLOperatorOptions {
  keepDimensions?: boolean;
  outputDataType?: MLOperandDataType;
}
interface ScaleAndBias extends MLOperatorOptions {
  scale?: MLOperand;
  bias?: MLOperand;
  epsilon?: number;
}
export interface MLBatchNormalizationOptions extends ScaleAndBias {
  axis?: number;
}
export interface MLInstanceNormalizationOptions extends ScaleAndBias {
  layout?: MLInputOperandLayout;
}
export interface MLLayerNormalizationOptions extends ScaleAndBias {
  axes?: Sizes;
}
export interface MLClampOptions extends MLOperatorOptions {
  minValue?: MLNumber;
  maxValue?: MLNumber;
}
interface WindowOptions extends MLOperatorOptions {
  padding?: Sizes;
  strides?: Sizes;
  dilations?: Sizes;
}
export interface MLConv2dOptions extends WindowOptions {
  groups?: number;
  inputLayout?: MLInputOperandLayout;
  filterLayout?: MLConv2dFilterOperandLayout;
  bias?: MLOperand;
}
export interface MLConvTranspose2dOptions extends WindowOptions {
  outputPadding?: Sizes;
  outputSizes?: Sizes;
  groups?: number;
  inputLayout?: MLInputOperandLayout;
  filterLayout?: MLConvTranspose2dFilterOperandLayout;
  bias?: MLOperand;
}
export interface MLPool2dOptions extends WindowOptions {
  windowDimensions?: Sizes;
  layout?: MLInputOperandLayout;
  outputShapeRounding?: MLRoundingType;
  // The former name of outputShapeRounding.
  roundingType?: MLRoundingType;
  outputSizes?: Sizes;
}
export interface MLCumulativeSumOptions extends MLOperatorOptions {
  exclusive?: boolean;
  reversed?: boolean;
}
export interface MLEluOptions extends MLOperatorOptions {
  alpha?: number;
}
export type MLLeakyReluOptions = MLEluOptions;
export interface MLLinearOptions extends MLOperatorOptions {
  alpha?: number;
  beta?: number;
}
export type MLHardSigmoidOptions = MLLinearOptions;
export interface MLGatherOptions extends MLOperatorOptions {
  axis?: number;
}
export type MLScatterOptions = MLGatherOptions;
export type MLSplitOptions = MLGatherOptions;
export interface MLGemmOptions extends MLLinearOptions {
  c?: MLOperand;
  aTranspose?: boolean;
  bTranspose?: boolean;
}
export interface MLGruCellOptions extends MLOperatorOptions {
  bias?: MLOperand;
  recurrentBias?: MLOperand;
  resetAfter?: boolean;
  layout?: MLGruWeightLayout;
  activations?: Iterable<MLRecurrentNetworkActivation>;
}
export interface MLGruOptions extends MLGruCellOptions {
  initialHiddenState?: MLOperand;
  returnSequence?: boolean;
  direction?: MLRecurrentNetworkDirection;
}
export interface MLLstmCellOptions extends MLOperatorOptions {
  bias?: MLOperand;
  recurrentBias?: MLOperand;
  peepholeWeight?: MLOperand;
  layout?: MLLstmWeightLayout;
  activations?: Iterable<MLRecurrentNetworkActivation>;
}
export interface MLLstmOptions extends MLLstmCellOptions {
  initialHiddenState?: MLOperand;
  initialCellState?: MLOperand;
  returnSequence?: boolean;
  direction?: MLRecurrentNetworkDirection;
}
export interface MLPadOptions extends MLOperatorOptions {
  mode?: MLPaddingMode;
  value?: MLNumber;
}
export interface MLReduceOptions extends MLOperatorOptions {
  axes?: Sizes;
  keepDimensions?: boolean;
}
export interface MLResample2dOptions extends MLOperatorOptions {
  mode?: MLInterpolationMode;
  scales?: Sizes;
  sizes?: Sizes;
  axes?: Sizes;
}
export interface MLReverseOptions extends MLOperatorOptions {
  axes?: Sizes;
}
export interface MLSliceOptions extends MLOperatorOptions {
  strides?: Sizes;
}
export interface MLTransposeOptions extends MLOperatorOptions {
  permutation?: Sizes;
}
export interface MLTriangularOptions extends MLOperatorOptions {
  upper?: boolean;
  diagonal?: number;
}

type Unary<Options = MLOperatorOptions> = (input: MLOperand, options?: Options) => MLOperand;
type Binary = (a: MLOperand, b: MLOperand, options?: MLOperatorOptions) => MLOperand;
type ArgMinMax = (input: MLOperand, axis: number, options?: MLArgMinMaxOptions) => MLOperand;
type Gather<Options> = (input: MLOperand, indices: MLOperand, options?: Options) => MLOperand;
type Scatter<Options> = (
  input: MLOperand,
  indices: MLOperand,
  updates: MLOperand,
  options?: Options,
) => MLOperand;
type Quantize = (
  input: MLOperand,
  scale: MLOperand,
  zeroPoint: MLOperand,
  options?: MLOperatorOptions,
) => MLOperand;
type Recurrent<Options> = (
  input: MLOperand,
  weight: MLOperand,
  recurrentWeight: MLOperand,
  steps: number,
  hiddenSize: number,
  options?: Options,
) => MLOperand[];

export interface MLOperators {
  argMin: ArgMinMax;
  argMax: ArgMinMax;
  batchNormalization: (
    input: MLOperand,
    mean: MLOperand,
    variance: MLOperand,
    options?: MLBatchNormalizationOptions,
  ) => MLOperand;
  cast: (input: MLOperand, dataType: MLOperandDataType, options?: MLOperatorOptions) => MLOperand;
  clamp: Unary<MLClampOptions>;
  concat: (inputs: Iterable<MLOperand>, axis: number, options?: MLOperatorOptions) => MLOperand;
  conv2d: (input: MLOperand, filter: MLOperand, options?: MLConv2dOptions) => MLOperand;
  convTranspose2d: (
    input: MLOperand,
    filter: MLOperand,
    options?: MLConvTranspose2dOptions,
  ) => MLOperand;
  cumulativeSum: (input: MLOperand, axis: number, options?: MLCumulativeSumOptions) => MLOperand;
  add: Binary;
  sub: Binary;
  mul: Binary;
  div: Binary;
  max: Binary;
  min: Binary;
  pow: Binary;
  equal: Binary;
  notEqual: Binary;
  greater: Binary;
  greaterOrEqual: Binary;
  lesser: Binary;
  lesserOrEqual: Binary;
  logicalNot: Unary;
  logicalAnd: Binary;
  logicalOr: Binary;
  logicalXor: Binary;
  isNaN: Unary;
  isInfinite: Unary;
  abs: Unary;
  ceil: Unary;
  cos: Unary;
  erf: Unary;
  exp: Unary;
  floor: Unary;
  identity: Unary;
  log: Unary;
  neg: Unary;
  reciprocal: Unary;
  roundEven: Unary;
  sin: Unary;
  sign: Unary;
  sqrt: Unary;
  tan: Unary;
  dequantizeLinear: Quantize;
  quantizeLinear: Quantize;
  elu: Unary<MLEluOptions>;
  expand: (input: MLOperand, newShape: Sizes, options?: MLOperatorOptions) => MLOperand;
  gather: Gather<MLGatherOptions>;
  gatherElements: Gather<MLGatherOptions>;
  gatherND: Gather<MLOperatorOptions>;
  gelu: Unary;
  gemm: (a: MLOperand, b: MLOperand, options?: MLGemmOptions) => MLOperand;
  gru: Recurrent<MLGruOptions>;
  gruCell: (
    input: MLOperand,
    weight: MLOperand,
    recurrentWeight: MLOperand,
    hiddenState: MLOperand,
    hiddenSize: number,
    options?: MLGruCellOptions,
  ) => MLOperand;
  hardSigmoid: Unary<MLHardSigmoidOptions>;
  hardSwish: Unary;
  instanceNormalization: Unary<MLInstanceNormalizationOptions>;
  layerNormalization: Unary<MLLayerNormalizationOptions>;
  leakyRelu: Unary<MLLeakyReluOptions>;
  linear: Unary<MLLinearOptions>;
  lstm: Recurrent<MLLstmOptions>;
  lstmCell: (
    input: MLOperand,
    weight: MLOperand,
    recurrentWeight: MLOperand,
    hiddenState: MLOperand,
    cellState: MLOperand,
    hiddenSize: number,
    options?: MLLstmCellOptions,
  ) => MLOperand[];
  matmul: Binary;
  pad: (
    input: MLOperand,
    beginningPadding: Sizes,
    endingPadding: Sizes,
    options?: MLPadOptions,
  ) => MLOperand;
  averagePool2d: Unary<MLPool2dOptions>;
  l2Pool2d: Unary<MLPool2dOptions>;
  maxPool2d: Unary<MLPool2dOptions>;
  prelu: (input: MLOperand, slope: MLOperand, options?: MLOperatorOptions) => MLOperand;
  reduceL1: Unary<MLReduceOptions>;
  reduceL2: Unary<MLReduceOptions>;
  reduceLogSum: Unary<MLReduceOptions>;
  reduceLogSumExp: Unary<MLReduceOptions>;
  reduceMax: Unary<MLReduceOptions>;
  reduceMean: Unary<MLReduceOptions>;
  reduceMin: Unary<MLReduceOptions>;
  reduceProduct: Unary<MLReduceOptions>;
  reduceSum: Unary<MLReduceOptions>;
  reduceSumSquare: Unary<MLReduceOptions>;
  relu: Unary;
  resample2d: Unary<MLResample2dOptions>;
  reshape: (input: MLOperand, newShape: Sizes, options?: MLOperatorOptions) => MLOperand;
  reverse: Unary<MLReverseOptions>;
  scatterElements: Scatter<MLScatterOptions>;
  scatterND: Scatter<MLOperatorOptions>;
  sigmoid: Unary;
  slice: (input: MLOperand, starts: Sizes, sizes: Sizes, options?: MLSliceOptions) => MLOperand;
  softmax: (input: MLOperand, axis: number, options?: MLOperatorOptions) => MLOperand;
  softplus: Unary;
  softsign: Unary;
  split: (input: MLOperand, splits: number | Sizes, options?: MLSplitOptions) => MLOperand[];
  tanh: Unary;
  tile: (input: MLOperand, repetitions: Sizes, options?: MLOperatorOptions) => MLOperand;
  transpose: Unary<MLTransposeOptions>;
  triangular: Unary<MLTriangularOptions>;
  where: (
    condition: MLOperand,
    trueValue: MLOperand,
    falseValue: MLOperand,
    options?: MLOperatorOptions,
  ) => MLOperand;
}

export type MLOperatorName = keyof MLOperators;
