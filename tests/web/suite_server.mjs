// Runs models for test_onnx_suite.py and test_workers.py: on each line of the standard input a model
// and its feeds in the order of its inputs, on each line of the output its outputs and what the threads
// did, or an error.
import {readFileSync} from 'node:fs';
import {createInterface} from 'node:readline';

import {CHECKED, load, printed} from './package.mjs';

const {env, InferenceSession, Tensor} = await load();
const {arrayOver} = await load('../common/tensor');
console.log = console.error; // the output is for results

// The execution provider, 'wasm' unless told. WebNN is the reference's. Then the number of threads:
// with it the module is the one that checks what workers do.
const [provider = 'wasm', threads] = process.argv.slice(2);
if (provider === 'webnn') (await load('../webnn-reference/index')).install();
if (threads !== undefined) {
  env.wasm.numThreads = Number(threads);
  env.wasm.wasmBinary = readFileSync(CHECKED);
}
const executionProviders = [...new Set([provider, 'wasm'])];

function bytesOf(text) {
  return Uint8Array.from(Buffer.from(text, 'base64'));
}

// {type, dims, data}: strings are themselves, all else is the bytes of the elements.
function tensorOf({type, dims, data}) {
  if (type === 'string') return new Tensor(type, data, dims);
  return new Tensor(type, arrayOver(type, bytesOf(data).buffer), dims);
}

function show({type, dims, data}) {
  if (type === 'string') return {type, dims, data};
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return {type, dims, data: bytes.toString('base64')};
}

// Ends the session's trace: how many loops were divided, and in how many workers helped.
async function loopsOf(session) {
  const trace = await printed('log', () => session.endProfiling());
  const count = (pattern) => trace.filter((line) => pattern.test(line)).length;
  return {divided: count(/"block_size":\[\d/), helped: count(/"num_run":[1-9]/)};
}

async function run({model, feeds}) {
  const quiet = {logSeverityLevel: 4};
  const enableProfiling = threads !== undefined;
  const options = {...quiet, executionProviders, enableProfiling};
  const session = await InferenceSession.create(bytesOf(model), options);
  try {
    const named = feeds.map((feed, i) => [session.inputNames[i], tensorOf(feed)]);
    const outputs = await session.run(Object.fromEntries(named), quiet);
    return {
      outputs: session.outputNames.map((name) => show(outputs[name])),
      ...(enableProfiling && (await loopsOf(session))),
    };
  } finally {
    await session.release();
  }
}

for await (const line of createInterface({input: process.stdin})) {
  let answer;
  try {
    answer = await run(JSON.parse(line));
  } catch (error) {
    answer = {error: error.message};
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
