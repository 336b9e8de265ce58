// A process of threads.test.mjs: runs models with a number of threads, and prints a digest of the
// results and what the module's threads did, as JSON.
import {createHash} from 'node:crypto';

import {product} from './model.mjs';
import {DIGITS, load} from './package.mjs';

const [threads, simd = 'fixed'] = process.argv.slice(2);
const {env, InferenceSession, Tensor} = await load();
const {loadCore} = await load('core');
if (threads !== 'default') env.wasm.numThreads = Number(threads);
env.wasm.simd = simd;

const numbers = (count) => Float32Array.from({length: count}, (_, i) => Math.sin(i * 12.9898));
const hash = createHash('sha256');
const trace = [];
console.log = (line) => trace.push(line);

async function run(model, feeds, options = {}) {
  const session = await InferenceSession.create(model, {...options, enableProfiling: true});
  for (let i = 0; i < 40; ++i) {
    for (const tensor of Object.values(await session.run(feeds))) {
      const {buffer, byteOffset, byteLength} = tensor.data;
      hash.update(new Uint8Array(buffer, byteOffset, byteLength));
    }
    await new Promise((resolve) => setTimeout(resolve, 2)); // in which workers come and fall asleep
  }
  session.endProfiling();
  await session.release();
}

const tensor = (...dims) =>
  new Tensor('float32', numbers(dims.reduce((size, dim) => size * dim, 1)), dims);
await run(product(300, 301, 302), {a: tensor(300, 302), b: tensor(302, 301)});
await run(product(1, 2048, 512), {a: tensor(1, 512), b: tensor(512, 2048)});
await run(DIGITS, {image: tensor(1, 1, 8, 8)});
// The session's own number of threads, in both places.
const alone = trace.length;
await run(product(300, 301, 302), {a: tensor(300, 302), b: tensor(302, 301)}, {
  extra: {intra_op_num_threads: 1},
});
await run(product(300, 301, 302), {a: tensor(300, 302), b: tensor(302, 301)}, {
  intraOpNumThreads: 1,
});
const divided = (lines) => lines.filter((line) => /"block_size":\[\d/.test(line)).length;
process.stdout.write(
  JSON.stringify({
    digest: hash.digest('hex'),
    workers: (await loadCore()).workers.count,
    divided: divided(trace.slice(0, alone)),
    helped: trace.filter((line) => /"num_run":[1-9]/.test(line)).length,
    dividedAlone: divided(trace.slice(alone)),
  }),
);
