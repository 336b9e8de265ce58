// The data types and ranks that operators accept for each operand, from the draft's tables of
// constraints, narrowed by an emulated device. `opSupportLimits` returns them, and builders check
// them.
import {DATA_TYPES, type MLOperandDataType} from './elements.js';
import {LARGEST_DIMENSION} from './shapes.js';
import type {MLOperatorName} from './operators.js';

export interface MLRankRange {
  min: number;
  max: number;
}

export interface MLTensorLimits {
  dataTypes: MLOperandDataType[];
  rankRange: MLRankRange;
}

// Limits of an operator by the names of its operands.
export type MLOperatorLimits = Record<string, MLTensorLimits>;

export interface MLOpSupportLimits extends Record<MLOperatorName, MLOperatorLimits> {
  preferredInputLayout: 'nchw' | 'nhwc';
  maxTensorByteLength: number;
  input: MLTensorLimits;
  constant: MLTensorLimits;
  output: MLTensorLimits;
}

// How an emulated device narrows the limits. Limits that are not named do not change.
export interface LimitsOptions {
  preferredInputLayout?: 'nchw' | 'nhwc';
  maxTensorByteLength?: number;
  // Of all operands, and of the inputs, constants and outputs of graphs.
  dataTypes?: readonly MLOperandDataType[];
  rankRange?: Partial<MLRankRange>;
  input?: Partial<MLTensorLimits>;
  constant?: Partial<MLTensorLimits>;
  output?: Partial<MLTensorLimits>;
  // Of single operators: `null` removes all types.
  operators?: Partial<
    Record<
      MLOperatorName,
      null | Record<
        string,
        {dataTypes?: readonly MLOperandDataType[]; rankRange?: Partial<MLRankRange>}
      >
    >
  >;
}

type Types = readonly MLOperandDataType[];
type Row = readonly [types: Types, least?: number, most?: number];

// The draft has no greatest rank; 8 is that of implementations.
const GREATEST_RANK = 8;

const ANY: Types = DATA_TYPES;
const FLOAT: Types = ['float32', 'float16'];
const SIGNED: Types = ['float32', 'float16', 'int64', 'int32', 'int8'];
const SUMMED: Types = ['float32', 'float16', 'int32', 'uint32', 'int64', 'uint64'];
const QUANTIZED: Types = ['uint8', 'int8', 'uint32', 'int32'];
const INDICES: Types = ['int32', 'uint32', 'int64'];
const BOOL: Types = ['uint8'];

const one = (types: Types, least = 0, most = GREATEST_RANK) => ({
  input: [types, least, most] as Row,
  output: [types, least, most] as Row,
});
const two = (types: Types, output = types, least = 0) => ({
  a: [types, least] as Row,
  b: [types, least] as Row,
  output: [output, least] as Row,
});
const fixed = (types: Types, ranks: Record<string, number>) =>
  Object.fromEntries(
    Object.entries(ranks).map(([name, rank]) => [name, [types, rank, rank] as Row]),
  );
const logicalOne = (types: Types) => ({a: [types] as Row, output: [BOOL] as Row});
const argument = {input: [ANY] as Row, output: [['int32', 'int64']] as Row};
const convolution = fixed(FLOAT, {input: 4, filter: 4, bias: 1, output: 4});

const ROWS: Record<MLOperatorName, Record<string, Row>> = {
  argMin: argument,
  argMax: argument,
  batchNormalization: {
    input: [FLOAT],
    ...fixed(FLOAT, {mean: 1, variance: 1, scale: 1, bias: 1}),
    output: [FLOAT],
  },
  cast: one(ANY),
  clamp: one(ANY),
  concat: {inputs: [ANY, 1], output: [ANY, 1]},
  conv2d: convolution,
  convTranspose2d: convolution,
  cumulativeSum: one(ANY, 1),
  add: two(ANY),
  sub: two(ANY),
  mul: two(ANY),
  div: two(ANY),
  max: two(ANY),
  min: two(ANY),
  pow: two(ANY),
  equal: two(ANY, BOOL),
  notEqual: two(ANY, BOOL),
  greater: two(ANY, BOOL),
  greaterOrEqual: two(ANY, BOOL),
  lesser: two(ANY, BOOL),
  lesserOrEqual: two(ANY, BOOL),
  logicalNot: logicalOne(BOOL),
  logicalAnd: two(BOOL),
  logicalOr: two(BOOL),
  logicalXor: two(BOOL),
  isNaN: logicalOne(FLOAT),
  isInfinite: logicalOne(FLOAT),
  abs: one(SIGNED),
  ceil: one(FLOAT),
  cos: one(FLOAT),
  erf: one(FLOAT),
  exp: one(FLOAT),
  floor: one(FLOAT),
  identity: one(ANY),
  log: one(FLOAT),
  neg: one(SIGNED),
  reciprocal: one(FLOAT),
  roundEven: one(FLOAT),
  sin: one(FLOAT),
  sign: one(SIGNED),
  sqrt: one(FLOAT),
  tan: one(FLOAT),
  dequantizeLinear: {input: [QUANTIZED], scale: [FLOAT], zeroPoint: [QUANTIZED], output: [FLOAT]},
  quantizeLinear: {input: [FLOAT], scale: [FLOAT], zeroPoint: [QUANTIZED], output: [QUANTIZED]},
  elu: one(FLOAT),
  expand: one(ANY),
  gather: {input: [ANY, 1], indices: [INDICES], output: [ANY]},
  gatherElements: {input: [ANY, 1], indices: [INDICES, 1], output: [ANY, 1]},
  gatherND: {input: [ANY, 1], indices: [INDICES, 1], output: [ANY]},
  gelu: one(FLOAT),
  gemm: {...fixed(FLOAT, {a: 2, b: 2}), c: [FLOAT, 0, 2], output: [FLOAT, 2, 2]},
  gru: {
    ...fixed(FLOAT, {input: 3, weight: 3, recurrentWeight: 3}),
    ...fixed(FLOAT, {bias: 2, recurrentBias: 2, initialHiddenState: 3}),
    outputs: [FLOAT, 3, 4],
  },
  gruCell: {
    ...fixed(FLOAT, {input: 2, weight: 2, recurrentWeight: 2, hiddenState: 2}),
    ...fixed(FLOAT, {bias: 1, recurrentBias: 1, output: 2}),
  },
  hardSigmoid: one(FLOAT),
  hardSwish: one(FLOAT),
  instanceNormalization: fixed(FLOAT, {input: 4, scale: 1, bias: 1, output: 4}),
  layerNormalization: {input: [FLOAT], scale: [FLOAT], bias: [FLOAT], output: [FLOAT]},
  leakyRelu: one(FLOAT),
  linear: one(FLOAT),
  lstm: {
    ...fixed(FLOAT, {input: 3, weight: 3, recurrentWeight: 3, bias: 2, recurrentBias: 2}),
    ...fixed(FLOAT, {peepholeWeight: 2, initialHiddenState: 3, initialCellState: 3}),
    outputs: [FLOAT, 3, 4],
  },
  lstmCell: {
    ...fixed(FLOAT, {input: 2, weight: 2, recurrentWeight: 2, hiddenState: 2, cellState: 2}),
    ...fixed(FLOAT, {bias: 1, recurrentBias: 1, peepholeWeight: 1, outputs: 2}),
  },
  matmul: two(FLOAT, FLOAT, 2),
  pad: one(ANY, 1),
  averagePool2d: one(FLOAT, 4, 4),
  l2Pool2d: one(FLOAT, 4, 4),
  maxPool2d: one(ANY, 4, 4),
  prelu: {input: [SIGNED], slope: [SIGNED], output: [SIGNED]},
  reduceL1: one(SUMMED),
  reduceL2: one(FLOAT),
  reduceLogSum: one(FLOAT),
  reduceLogSumExp: one(FLOAT),
  reduceMax: one(ANY),
  reduceMean: one(FLOAT),
  reduceMin: one(ANY),
  reduceProduct: one(SUMMED),
  reduceSum: one(SUMMED),
  reduceSumSquare: one(SUMMED),
  relu: one(SIGNED),
  resample2d: one(FLOAT, 4, 4),
  reshape: one(ANY),
  reverse: one(ANY),
  scatterElements: {
    input: [ANY, 1],
    indices: [INDICES, 1],
    updates: [ANY, 1],
    output: [ANY, 1],
  },
  scatterND: {input: [ANY, 1], indices: [INDICES, 1], updates: [ANY], output: [ANY, 1]},
  sigmoid: one(FLOAT),
  slice: one(ANY),
  softmax: one(FLOAT, 1),
  softplus: one(FLOAT),
  softsign: one(FLOAT),
  split: {input: [ANY, 1], outputs: [ANY, 1]},
  tanh: one(FLOAT),
  tile: one(ANY),
  transpose: one(ANY),
  triangular: one(ANY, 2),
  where: {condition: [BOOL], trueValue: [ANY], falseValue: [ANY], output: [ANY]},
};

export const OPERATOR_NAMES = Object.keys(ROWS) as MLOperatorName[];

interface Narrowing {
  dataTypes?: readonly MLOperandDataType[];
  rankRange?: Partial<MLRankRange>;
}

function narrow(limits: MLTensorLimits, by: Narrowing = {}): MLTensorLimits {
  const {dataTypes = limits.dataTypes, rankRange = {}} = by;
  return {
    dataTypes: limits.dataTypes.filter((type) => dataTypes.includes(type)),
    rankRange: {
      min: Math.max(limits.rankRange.min, rankRange.min ?? 0),
      max: Math.min(limits.rankRange.max, rankRange.max ?? GREATEST_RANK),
    },
  };
}

// The limits of a device.
export function limitsOf(options: LimitsOptions = {}): MLOpSupportLimits {
  const common = {dataTypes: options.dataTypes, rankRange: options.rankRange};
  const limits = ([types, min = 0, max = GREATEST_RANK]: Row, by?: Narrowing) =>
    narrow(narrow({dataTypes: [...types], rankRange: {min, max}}, common), by);
  const operators = OPERATOR_NAMES.map((name) => {
    const by = options.operators?.[name];
    const rows = Object.entries(ROWS[name]).map(([operand, row]) => [
      operand,
      limits(row, by === null ? {dataTypes: []} : by?.[operand]),
    ]);
    return [name, Object.fromEntries(rows)];
  });
  return {
    preferredInputLayout: options.preferredInputLayout ?? 'nchw',
    maxTensorByteLength: options.maxTensorByteLength ?? LARGEST_DIMENSION,
    input: limits([ANY], options.input),
    constant: limits([ANY], options.constant),
    output: limits([ANY], options.output),
    ...(Object.fromEntries(operators) as Record<MLOperatorName, MLOperatorLimits>),
  };
}
