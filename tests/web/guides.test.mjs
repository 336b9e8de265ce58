// The README's JavaScript, as a reader would run it: in the project's folder, with the package
// installed.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {cpSync, readFileSync} from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import {newApplication} from './packed.mjs';
import {DIGITS, PACKAGE} from './package.mjs';

const README = new URL('../../README.md', import.meta.url);

test('the README has a program that runs', () => {
  const programs = [...readFileSync(README, 'utf8').matchAll(/^```js\n(.*?)^```$/gms)];
  assert.equal(programs.length, 1);
  const application = newApplication({'digits.mjs': programs[0][1]}, {'tenon-web': PACKAGE});
  try {
    cpSync(DIGITS, path.join(application.folder, 'examples/digits/digits.onnx'));
    const {status, stdout, stderr} = spawnSync(process.execPath, ['digits.mjs'], {
      cwd: application.folder,
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^Float32Array\(10\) \[/);
  } finally {
    application.remove();
  }
});
