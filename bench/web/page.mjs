// Measures one case on one engine in a page of a fresh browser: see compare.mjs.
import {readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

import {open, page} from '../../tests/web/browser.mjs';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const TYPES = {'.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm'};
const HEADERS = {
  'cross-origin-opener-policy': 'same-origin', // for threads
  'cross-origin-embedder-policy': 'require-corp',
};

// `folders` are those of the packages, by engine; `entries` their files to import. The result of the
// case, with the browser.
export async function measureInPage(task, folders, entries) {
  const entry = `/${task.engine}/${entries[task.engine]}`;
  const text = page(`
    const {measure} = await import('/bench/web/case.mjs');
    Object.assign(outcome, await measure(${JSON.stringify(task)}, '${entry}', '/models/'));
    outcome.browser = navigator.userAgent;
    outcome.isIsolated = crossOriginIsolated;`);
  let told;
  const outcome = new Promise((resolve) => (told = resolve));
  const server = createServer(async (request, response) => {
    if (request.method === 'POST') {
      let sent = '';
      for await (const part of request) sent += part;
      response.end();
      told(JSON.parse(sent));
      return;
    }
    const [, first, rest] = /^\/([^/]*)\/?(.*)$/.exec(new URL(request.url, 'http://host').pathname);
    const folder = {bench: `${ROOT}/bench`, tests: `${ROOT}/tests`, models: task.models, ...folders}[first];
    try {
      const body = first === 'page.html' ? text : readFileSync(path.join(folder, rest));
      const type = TYPES[path.extname(request.url)] ?? 'application/octet-stream';
      response.writeHead(200, {'content-type': type, ...HEADERS});
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const {result} = await open(`http://127.0.0.1:${server.address().port}/page.html`, outcome);
    if (result.error !== undefined) throw new Error(`${task.engine}, ${task.name}: ${result.error}`);
    return result;
  } finally {
    server.close();
  }
}
