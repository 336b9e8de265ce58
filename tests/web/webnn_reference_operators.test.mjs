// The operators of the reference of WebNN against results in double of other libraries, which
// make_webnn_cases.py has written down.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';

import {arrayOf, elementsOf, halfBits, halfOf, reference, run} from './webnn.mjs';

const {createML, MLGraphBuilder} = reference;
const CASES = JSON.parse(readFileSync(new URL('webnn_cases.json', import.meta.url), 'utf8'));

// Half of the distance between neighbours, relative and near zero.
const ROUNDING = {
  float32: {relative: 2 ** -24, absolute: 2 ** -150, greatest: 3.4028235677973366e38},
  float16: {relative: 2 ** -11, absolute: 2 ** -25, greatest: 65520},
};
// What sums in double may lose by cancellation.
const CANCELLATION = 1e-13;

// Results are rounded once: they are the neighbours of the exact ones.
function checkFloat(dataType, got, expected, what) {
  const {relative, absolute, greatest} = ROUNDING[dataType];
  if (Number.isFinite(expected) && Math.abs(expected) < greatest) {
    const tolerance = 1.001 * relative * Math.abs(expected) + absolute + CANCELLATION;
    assert.ok(Math.abs(got - expected) <= tolerance, `${what}: expected ${expected}, got ${got}`);
  } else {
    const limit = Number.isNaN(expected) ? NaN : Math.sign(expected) * Infinity;
    assert.ok(Object.is(got, limit), `${what}: expected ${limit}, got ${got}`);
  }
  if (expected === 0) assert.ok(Object.is(got, expected), `${what}: the sign of zero`);
}

function check(results, outputs, what) {
  assert.equal(results.length, outputs.length, what);
  results.forEach(({dataType, shape, data}, i) => {
    const expected = outputs[i];
    assert.equal(dataType, expected.dataType, what);
    assert.deepEqual(shape, expected.shape, what);
    if (dataType.startsWith('float')) {
      data.forEach((x, j) => {
        checkFloat(dataType, x, Number(expected.data[j]), `${what}: output ${i}[${j}]`);
      });
    } else {
      assert.deepEqual(data.map(String), expected.data.map(String), what);
    }
  });
}

// The same with float16 for float32.
function inHalf(value) {
  if (value === 'float32') return 'float16';
  if (Array.isArray(value)) return value.map(inHalf);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, x]) => [name, inHalf(x)]));
}

// The arguments, with `operandOf` for their operands.
function argumentsOf(value, operandOf) {
  if (Array.isArray(value)) return value.map((item) => argumentsOf(item, operandOf));
  if (typeof value !== 'object' || value === null) return value;
  if ('operand' in value) return operandOf(value.operand);
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, argumentsOf(item, operandOf)]),
  );
}

async function runCase({operator, args}, areConstants) {
  const context = await createML().createContext();
  const inputs = {};
  argumentsOf(args, (operand) => {
    if (!areConstants) inputs[`x${Object.keys(inputs).length}`] = operand;
  });
  const results = await run(
    inputs,
    (builder, operands) => {
      const given = Object.values(operands);
      const taken = argumentsOf(args, ({dataType, shape, data}) =>
        areConstants ? builder.constant({dataType, shape}, arrayOf(dataType, data)) : given.shift(),
      );
      const outputs = [builder[operator](...taken)].flat();
      return Object.fromEntries(outputs.map((output, i) => [`y${i}`, output]));
    },
    context,
  );
  return Object.values(results);
}

const operators = Map.groupBy?.(CASES, ({operator}) => operator) ?? new Map();
if (operators.size === 0) {
  for (const one of CASES)
    operators.set(one.operator, [...(operators.get(one.operator) ?? []), one]);
}

// WB-97
test('has a case for every operator', () => {
  const names = Object.keys(MLGraphBuilder.prototype).sort();
  assert.deepEqual([...operators.keys()].sort(), names);
});

for (const [operator, cases] of operators) {
  // WB-93, WB-97
  test(`computes ${operator} as other libraries do`, async () => {
    for (const [i, one] of cases.entries()) {
      const what = `${operator} ${i} ${JSON.stringify(one.args)}`;
      check(await runCase(one, false), one.outputs, what);
      check(await runCase(one, true), one.outputs, `${what} of constants`);
      if (one.only !== undefined || !JSON.stringify(one).includes('float32')) continue;
      const half = inHalf(one);
      check(await runCase(half, false), half.outputs, `${what} in float16`);
    }
  });
}
