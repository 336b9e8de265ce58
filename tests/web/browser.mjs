// Pages in Chromium without a window, which send their results to a server on the loopback address.
import {execFileSync, spawn} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import path from 'node:path';

import {PACKAGE} from './package.mjs';

const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.onnx': 'application/octet-stream',
  '.png': 'image/png',
  '.wasm': 'application/wasm',
};

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

export const chromium = findChromium();
export const skip = chromium === undefined && 'chromium is not installed';

// Serves `files` by their paths, and the package; `outcome` settles when a page has sent its
// results. Other origins may read all of it.
export async function serve(files, headers = {}) {
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
      response.writeHead(200, {
        'content-type': TYPES[path.extname(request.url)] ?? 'application/octet-stream',
        'access-control-allow-origin': '*',
        ...headers,
      });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {server, outcome, address: `http://127.0.0.1:${server.address().port}`};
}

// Opens a page and waits for `outcome`. Its lines on the console.
export async function open(address, outcome) {
  const profile = mkdtempSync(path.join(tmpdir(), 'tenon-web-'));
  const browser = spawn(
    chromium,
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

// The text of a page that runs `body`, a part of a module that fills the object `outcome`.
export function page(body, head = '') {
  return `<!doctype html>${head}<script type="module">
    const outcome = {};
    try {
      ${body}
    } catch (error) {
      outcome.error = String(error?.stack ?? error);
    }
    await fetch('/outcome', {method: 'POST', body: JSON.stringify(outcome)});
  </script>`;
}

// Opens `files['/page.html']`: its outcome, and its lines on the console.
export async function show(files, headers) {
  const {server, outcome, address} = await serve(files, headers);
  try {
    const {result, lines} = await open(`${address}/page.html`, outcome);
    if (result.error !== undefined) throw new Error(result.error);
    return {result, lines};
  } finally {
    server.close();
  }
}
