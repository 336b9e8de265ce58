// Replays the programs of print_programs.cpp on the reference of WebNN, and compares what they give
// with what the CPU provider gave. Exits with 77 where the reference is not built (./dev web).
//
// Usage: run_programs.mjs PROGRAM REFERENCE, the folder of the compiled reference
import {execFileSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import {pathToFileURL} from 'node:url';

const [program, reference] = process.argv.slice(2);
const index = path.join(reference, 'index.js');
if (!existsSync(index)) {
  console.log('skipped: ./dev web has not built the reference of WebNN');
  process.exit(77);
}
const {createML, MLGraphBuilder} = await import(pathToFileURL(index));

const TOLERANCE = 2e-5;
const ARRAYS = {
  float32: Float32Array, float16: Uint16Array, int64: BigInt64Array, uint64: BigUint64Array,
  int32: Int32Array, uint32: Uint32Array, int8: Int8Array, uint8: Uint8Array,
};

const bytesOf = (hex) => Uint8Array.from(Buffer.from(hex, 'hex'));
const elementsOf = (type, bytes) => [...new ARRAYS[type](bytes.buffer ?? bytes)];

function replay(builder, {inputs, constants, calls, outputs}, elements) {
  const operands = [
    ...inputs.map((input) => builder.input(input.name, input)),
    ...constants.map((constant, i) => builder.constant(constant, elements[i].buffer)),
  ];
  const value = (argument) => {
    if (Array.isArray(argument)) return argument.map(value);
    if (typeof argument !== 'object') return argument;
    if ('number' in argument) return Number(argument.number);
    if ('bigint' in argument) return BigInt(argument.bigint);
    return operands[argument.operand];
  };
  for (const {method, args, options, results} of calls) {
    const given = Object.entries(options ?? {}).map(([name, each]) => [name, value(each)]);
    const made = [builder[method](...args.map(value), Object.fromEntries(given))].flat();
    if (made.length !== results) throw new Error(`${method}: ${made.length} results`);
    operands.push(...made);
  }
  for (const {name, operand, dataType, shape} of outputs) {
    const is = operands[operand];
    if (is.dataType !== dataType || `${is.shape}` !== `${shape}`) {
      throw new Error(`${name}: ${is.dataType} [${is.shape}] instead of ${dataType} [${shape}]`);
    }
  }
  return builder.build(Object.fromEntries(outputs.map((one) => [one.name, operands[one.operand]])));
}

async function run(context, {program, constants, inputs, outputs}) {
  const graph = await replay(new MLGraphBuilder(context), program, constants.map(bytesOf));
  const tensors = async (list, flags) => {
    const made = list.map(async (is) => [is.name, await context.createTensor({...is, ...flags})]);
    return Object.fromEntries(await Promise.all(made));
  };
  const from = await tensors(program.inputs, {writable: true});
  const into = await tensors(program.outputs, {readable: true});
  for (const [name, tensor] of Object.entries(from)) {
    const {dataType, coreType = dataType} = program.inputs.find((input) => input.name === name);
    const elements = elementsOf(coreType, bytesOf(inputs[name]));
    const wide = dataType.endsWith('64') || coreType === dataType;
    context.writeTensor(tensor, ARRAYS[dataType].from(elements, wide ? undefined : Number));
  }
  context.dispatch(graph, from, into);
  for (const {name, dataType, coreType = dataType} of program.outputs) {
    const got = elementsOf(dataType, await context.readTensor(into[name]));
    const exact = elementsOf(coreType, bytesOf(outputs[name]));
    const expected = coreType === dataType ? exact : exact.map(Number);
    if (got.length !== expected.length) throw new Error(`${name}: ${got.length} elements`);
    expected.forEach((value, i) => {
      const isNear =
        dataType === 'float32' &&
        Math.abs(value - got[i]) <= TOLERANCE * Math.max(1, Math.abs(value));
      if (isNear || Object.is(value, got[i]) || value === got[i]) return;
      throw new Error(`${name}[${i}]: ${got[i]} instead of ${value}`);
    });
  }
}

const context = await createML().createContext();
const lines = execFileSync(program, {encoding: 'utf8', maxBuffer: 2 ** 28}).trim().split('\n');
let failures = 0;
for (const line of lines) {
  const one = JSON.parse(line);
  try {
    await run(context, one);
  } catch (error) {
    ++failures;
    console.log(`${one.name}: ${error.message}`);
  }
}
console.log(`${lines.length - failures} of ${lines.length} programs give what the CPU gives`);
process.exit(failures === 0 ? 0 : 1);
