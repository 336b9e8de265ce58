// The package in a page: Chromium without a window, which sends its results to a server on the
// loopback address.
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import path from 'node:path';
import test from 'node:test';

import {product} from './model.mjs';
import {DIGITS, PACKAGE} from './package.mjs';

const DEADLINE_MS = 120_000;
const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
  '.onnx': 'application/octet-stream',
};
const PAGE = `<!doctype html><script type="module">
  import {env, InferenceSession, Tensor} from '/dist/src/index.js';
  const outcome = {};
  try {
    const session = await InferenceSession.create('/digits.onnx', {enableProfiling: true});
    const image = new Tensor('float32', new Float32Array(64), [1, 1, 8, 8]);
    const options = {extra: {tenon: {run_report: '1'}}};
    const {probabilities} = await session.run({image}, options);
    outcome.sum = probabilities.data.reduce((sum, value) => sum + value, 0);
    outcome.report = options.report;
    session.endProfiling();
    await session.release();
    // With the reference instead of the browser's WebNN.
    const {install} = await import('/dist/webnn-reference/index.js');
    const uninstall = install();
    const onDevice = await InferenceSession.create('/digits.onnx', {executionProviders: ['webnn']});
    const again = await onDevice.run({image});
    outcome.difference = Math.max(
      ...again.probabilities.data.map((value, i) => Math.abs(value - probabilities.data[i])),
    );
    outcome.dispatches = env.tenon.stats().total.dispatches;
    await onDevice.release();
    uninstall();
    outcome.missing = await InferenceSession.create('/none.onnx').catch(({message}) => message);
  } catch (error) {
    outcome.error = String(error?.stack ?? error);
  }
  await fetch('/outcome', {method: 'POST', body: JSON.stringify(outcome)});
</script>`;

function findChromium() {
  for (const name of ['chromium', 'chromium-browser']) {
    try {
      return execFileSync('which', [name], {encoding: 'utf8'}).trim();
    } catch {
      continue;
    }
  }
  return undefined;
}

// With more threads than the default, and a product that is large enough for them.
const THREADS_PAGE = `<!doctype html><script type="module">
  import {env, InferenceSession, Tensor} from '/dist/src/index.js';
  import {loadCore} from '/dist/src/core.js';
  const outcome = {isIsolated: crossOriginIsolated};
  try {
    env.wasm.numThreads = 3;
    const size = 256;
    const session = await InferenceSession.create('/product.onnx');
    const values = Float32Array.from({length: size * size}, (_, i) => (i % 7) - 3);
    const x = new Tensor('float32', values, [size, size]);
    for (let run = 0; run < 50; ++run) {
      const {y} = await session.run({a: x, b: x});
      outcome.sum = y.data.reduce((sum, value) => sum + value, 0);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    outcome.workers = (await loadCore()).workers.count;
  } catch (error) {
    outcome.error = String(error?.stack ?? error);
  }
  await fetch('/outcome', {method: 'POST', body: JSON.stringify(outcome)});
</script>`;

const ISOLATION = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
};

// Serves the pages, the package and models; `outcome` settles when a page has sent its results.
async function serve(headers = {}) {
  const files = {
    '/page.html': PAGE,
    '/threads.html': THREADS_PAGE,
    '/digits.onnx': readFileSync(DIGITS),
    '/product.onnx': Buffer.from(product(256, 256, 256)),
  };
  let told;
  const outcome = new Promise((resolve) => (told = resolve));
  const server = createServer(async (request, response) => {
    if (request.method === 'POST') {
      let text = '';
      for await (const part of request) text += part;
      response.end();
      told(JSON.parse(text));
      return;
    }
    try {
      const body = files[request.url] ?? readFileSync(path.join(PACKAGE, request.url));
      response.writeHead(200, {'content-type': TYPES[path.extname(request.url)], ...headers});
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {server, outcome, address: `http://127.0.0.1:${server.address().port}`};
}

// Opens a page and waits for `outcome`. Its lines on the console.
async function open(program, address, outcome) {
  const profile = mkdtempSync(path.join(tmpdir(), 'tenon-web-'));
  const browser = spawn(
    program,
    [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--enable-logging=stderr',
      `--user-data-dir=${profile}`,
      address,
    ],
    {stdio: ['ignore', 'ignore', 'pipe']},
  );
  let log = '';
  browser.stderr.setEncoding('utf8').on('data', (part) => (log += part));
  const ended = new Promise((resolve) => browser.on('close', resolve));
  let result;
  try {
    result = await Promise.race([outcome, ended.then(() => ({error: `it ended: ${log}`}))]);
  } finally {
    browser.kill();
    await ended;
    rmSync(profile, {recursive: true, force: true, maxRetries: 5});
  }
  const lines = [...log.matchAll(/CONSOLE[:(]\d+\)?\] "(.*)", source: /g)].map(([, line]) => line);
  return {result, lines};
}

const chromium = findChromium();
const skip = chromium === undefined && 'chromium is not installed';

// PR-17, PR-51, WB-101, WB-102
test('runs in a page, whose console has the trace', {skip, timeout: DEADLINE_MS}, async () => {
  const {server, outcome, address} = await serve();
  try {
    const {result, lines} = await open(chromium, `${address}/page.html`, outcome);
    assert.equal(result.error, undefined);
    assert.ok(Math.abs(result.sum - 1) < 1e-5);
    assert.ok(result.report.nodes > 0);
    assert.ok(result.difference < 1e-5);
    assert.equal(result.dispatches, 1);
    assert.match(result.missing, /404/);
    const trace = lines.filter((line) => line.startsWith('{"cat"'));
    const events = trace.map((line) => JSON.parse(line));
    assert.ok(events.some(({name}) => name === 'model_run'));
    assert.ok(events.some(({name}) => name.endsWith('_kernel_time')));
  } finally {
    server.close();
  }
});

// WB-28, WB-39, WB-42, WB-102: one file for pages with threads and without. The page's own thread,
// which must not sleep, runs the session.
for (const [name, headers] of [['isolated', ISOLATION], ['not isolated', {}]]) {
  test(`runs in a page that is ${name}`, {skip, timeout: DEADLINE_MS}, async () => {
    const {server, outcome, address} = await serve(headers);
    try {
      const {result, lines} = await open(chromium, `${address}/threads.html`, outcome);
      const isIsolated = headers === ISOLATION;
      assert.equal(result.error, undefined);
      assert.equal(result.isIsolated, isIsolated);
      assert.equal(result.workers, isIsolated ? 2 : 0);
      const size = 256;
      const values = Array.from({length: size * size}, (_, i) => (i % 7) - 3);
      const sums = (at) => Array.from({length: size}, (_, k) =>
        Array.from({length: size}, (_, i) => values[at(i, k)]).reduce((sum, x) => sum + x));
      const columns = sums((i, k) => i * size + k); // of A
      const rows = sums((j, k) => k * size + j); // of B
      assert.equal(result.sum, columns.reduce((sum, x, k) => sum + x * rows[k], 0));
      const warnings = lines.filter((line) => line.includes('cross-origin'));
      assert.equal(warnings.length, isIsolated ? 0 : 1);
    } finally {
      server.close();
    }
  });
}
