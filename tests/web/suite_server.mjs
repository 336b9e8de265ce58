// Runs models for test_onnx_suite.py: on each line of the standard input a model and its feeds in
// the order of its inputs, on each line of the output its outputs, or an error.
import {createInterface} from 'node:readline';

import {load} from './package.mjs';

const {InferenceSession, Tensor} = await load();
const {arrayOver} = await load('../common/tensor');
console.log = console.error; // the output is for results

// The execution provider, 'wasm' unless told. WebNN is the reference's.
const [provider = 'wasm'] = process.argv.slice(2);
if (provider === 'webnn') (await load('../webnn-reference/index')).install();
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

async function run({model, feeds}) {
  const quiet = {logSeverityLevel: 4};
  const session = await InferenceSession.create(bytesOf(model), {...quiet, executionProviders});
  try {
    const named = feeds.map((feed, i) => [session.inputNames[i], tensorOf(feed)]);
    const outputs = await session.run(Object.fromEntries(named), quiet);
    return session.outputNames.map((name) => show(outputs[name]));
  } finally {
    await session.release();
  }
}

for await (const line of createInterface({input: process.stdin})) {
  let answer;
  try {
    answer = {outputs: await run(JSON.parse(line))};
  } catch (error) {
    answer = {error: error.message};
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
