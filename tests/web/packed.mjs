// Applications in folders of their own, with the packages as npm would install them.
import {execFileSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';

import {PACKAGE} from './package.mjs';

export const COMMON_PACKAGE = path.join(PACKAGE, '../common');

// Unpacks what npm would publish of a package as node_modules/`name` of an application.
function install(application, name, from) {
  const [{filename}] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--silent', '--pack-destination', application, from], {
      encoding: 'utf8',
    }),
  );
  const to = path.join(application, 'node_modules', name);
  mkdirSync(to, {recursive: true});
  execFileSync('tar', ['xzf', path.join(application, filename), '-C', to, '--strip-components=1']);
}

// The folder of an application that has the packages under the names of onnxruntime-web and -common,
// and these files.
export function newApplication(files, aliases = {'onnxruntime-web': PACKAGE}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'tenon-app-'));
  for (const [name, from] of Object.entries(aliases)) install(folder, name, from);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), {recursive: true});
    writeFileSync(path.join(folder, name), text);
  }
  return {folder, remove: () => rmSync(folder, {recursive: true, force: true, maxRetries: 5})};
}
