// The package in a page: Chromium without a window, which sends its results to a server on the
// loopback address.
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import path from 'node:path';
import test from 'node:test';

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

// Serves the page, the package and a model; `outcome` settles when the page has sent its results.
async function serve() {
  const files = {'/page.html': PAGE, '/digits.onnx': readFileSync(DIGITS)};
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
      response.writeHead(200, {'content-type': TYPES[path.extname(request.url)]});
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
