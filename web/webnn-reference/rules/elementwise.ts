// Operators that compute each element from one element of each operand.
import type {Rule} from '../draft.js';
import {
  ARITHMETIC,
  binary,
  cast,
  clamp,
  COMPARISONS,
  compare,
  dequantizeLinear,
  PRELU,
  quantizeLinear,
  TESTS,
  testEach,
  unary,
  where,
  type FloatFunction,
  type IntegerFunction,
} from '../kernels/elementwise.js';
import {erf, gelu, relu, roundEven, sigmoid, softplus} from '../kernels/functions.js';
import {same} from '../kernels/movement.js';
import type {Draft} from '../draft.js';
import type {OperandState} from '../operand.js';
import {broadcast} from '../shapes.js';
import {dataType} from '../webidl.js';

// Shapes are broadcast in pairs.
function broadcastAll(draft: Draft, ...operands: OperandState[]): number[] {
  return operands.reduce<number[]>((shape, operand) => {
    return (
      broadcast(shape, operand.shape) ??
      draft.fail('shapes', 'ones that fit', operands.map((one) => `[${one.shape}]`).join(' and '))
    );
  }, []);
}

function unaryRule(onFloats: FloatFunction, onIntegers?: IntegerFunction): Rule {
  return (draft, input, options) => {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    return draft.output(dataType, shape, unary(onFloats, onIntegers));
  };
}

// An operator whose function depends on options, which are numbers in the type of the input.
function parameterRule(
  defaults: Record<string, number>,
  functionOf: (parameters: Record<string, number>) => FloatFunction,
): Rule {
  return (draft, input, options) => {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    const parameters = Object.entries(defaults).map(([name, otherwise]) => [
      name,
      draft.float(name, otherwise, dataType),
    ]);
    const onFloats = functionOf(Object.fromEntries(parameters) as Record<string, number>);
    return draft.output(dataType, shape, unary(onFloats));
  };
}

function binaryRule(name: keyof typeof ARITHMETIC): Rule {
  return (draft, a, b, options) => {
    draft.options(options);
    const first = draft.operand('a', a);
    const second = draft.operand('b', b, first);
    return draft.output(first.dataType, broadcastAll(draft, first, second), (inputs, output) =>
      binary(ARITHMETIC[name], inputs.a, inputs.b, output),
    );
  };
}

function comparisonRule(name: keyof typeof COMPARISONS): Rule {
  return (draft, a, b, options) => {
    draft.options(options);
    const first = draft.operand('a', a);
    const second = draft.operand('b', b, first);
    return draft.output('uint8', broadcastAll(draft, first, second), compare(COMPARISONS[name]));
  };
}

function testRule(name: keyof typeof TESTS): Rule {
  return (draft, a, options) => {
    draft.options(options);
    const {shape} = draft.operand('a', a);
    return draft.output('uint8', shape, testEach(TESTS[name]));
  };
}

// `input` decides the shape and `typed` the type; the other two apply to blocks of the input.
function quantizationRule(typed: 'scale' | 'zeroPoint'): Rule {
  return (draft, input, scale, zeroPoint, options) => {
    draft.options(options);
    const x = draft.operand('input', input);
    const isQuantization = typed === 'zeroPoint';
    const scales = draft.operand('scale', scale, isQuantization ? x : undefined);
    const zeroPoints = draft.operand('zeroPoint', zeroPoint, isQuantization ? undefined : x);
    draft.checkShape('zeroPoint', zeroPoints, scales.shape);
    const isBlocks =
      scales.shape.length === x.shape.length &&
      scales.shape.every((size, axis) => x.shape[axis] % size === 0);
    if (!isBlocks) draft.fail('scale', `a shape for blocks of [${x.shape}]`, `[${scales.shape}]`);
    return isQuantization
      ? draft.output(zeroPoints.dataType, x.shape, quantizeLinear)
      : draft.output(scales.dataType, x.shape, dequantizeLinear);
  };
}

const magnitude = (x: bigint) => (x < 0n ? -x : x);
const signOf = (x: bigint) => (x > 0n ? 1n : x < 0n ? -1n : 0n);

export const elementwiseRules = {
  add: binaryRule('add'),
  sub: binaryRule('sub'),
  mul: binaryRule('mul'),
  div: binaryRule('div'),
  max: binaryRule('max'),
  min: binaryRule('min'),
  pow: binaryRule('pow'),

  equal: comparisonRule('equal'),
  notEqual: comparisonRule('notEqual'),
  greater: comparisonRule('greater'),
  greaterOrEqual: comparisonRule('greaterOrEqual'),
  lesser: comparisonRule('lesser'),
  lesserOrEqual: comparisonRule('lesserOrEqual'),
  logicalAnd: comparisonRule('logicalAnd'),
  logicalOr: comparisonRule('logicalOr'),
  logicalXor: comparisonRule('logicalXor'),
  logicalNot: testRule('logicalNot'),
  isNaN: testRule('isNaN'),
  isInfinite: testRule('isInfinite'),

  abs: unaryRule(Math.abs, magnitude),
  ceil: unaryRule(Math.ceil),
  cos: unaryRule(Math.cos),
  erf: unaryRule(erf),
  exp: unaryRule(Math.exp),
  floor: unaryRule(Math.floor),
  gelu: unaryRule(gelu),
  hardSwish: unaryRule((x) => (x * Math.max(0, Math.min(6, x + 3))) / 6),
  log: unaryRule(Math.log),
  neg: unaryRule(
    (x) => -x,
    (x) => -x,
  ),
  reciprocal: unaryRule((x) => 1 / x),
  relu: unaryRule(relu, (x) => (x > 0n ? x : 0n)),
  roundEven: unaryRule(roundEven),
  sigmoid: unaryRule(sigmoid),
  sign: unaryRule((x) => (x > 0 ? 1 : x < 0 ? -1 : 0), signOf),
  sin: unaryRule(Math.sin),
  softplus: unaryRule(softplus),
  softsign: unaryRule((x) => x / (1 + Math.abs(x))),
  sqrt: unaryRule(Math.sqrt),
  tan: unaryRule(Math.tan),
  tanh: unaryRule(Math.tanh),

  elu: parameterRule(
    {alpha: 1},
    ({alpha}) =>
      (x) =>
        x > 0 ? x : alpha * Math.expm1(x),
  ),
  hardSigmoid: parameterRule({alpha: 0.2, beta: 0.5}, ({alpha, beta}) => (x) => {
    return Math.max(0, Math.min(1, alpha * x + beta));
  }),
  leakyRelu: parameterRule(
    {alpha: 0.01},
    ({alpha}) =>
      (x) =>
        x < 0 ? alpha * x : x,
  ),
  linear: parameterRule(
    {alpha: 1, beta: 0},
    ({alpha, beta}) =>
      (x) =>
        alpha * x + beta,
  ),

  identity(draft, input, options) {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    return draft.output(dataType, shape, same);
  },

  cast(draft, input, type, options) {
    draft.options(options);
    const {shape} = draft.operand('input', input);
    return draft.output(dataType(type, draft.what('dataType')), shape, cast);
  },

  // The draft's text swaps the defaults.
  clamp(draft, input, options) {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    const least = draft.number('minValue', -Infinity, dataType);
    const greatest = draft.number('maxValue', Infinity, dataType);
    if (least > greatest) draft.fail('minValue', `at most ${greatest}`, least);
    return draft.output(dataType, shape, clamp(least, greatest));
  },

  prelu(draft, input, slope, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const slopes = draft.operand('slope', slope, x);
    return draft.output(x.dataType, broadcastAll(draft, x, slopes), (inputs, output) =>
      binary(PRELU, inputs.input, inputs.slope, output),
    );
  },

  where(draft, condition, trueValue, falseValue, options) {
    draft.options(options);
    const test = draft.operand('condition', condition);
    const first = draft.operand('trueValue', trueValue);
    const second = draft.operand('falseValue', falseValue, first);
    return draft.output(first.dataType, broadcastAll(draft, test, first, second), where);
  },

  quantizeLinear: quantizationRule('zeroPoint'),
  dequantizeLinear: quantizationRule('scale'),
} satisfies Record<string, Rule>;
