// Files that the module writes: WASI's calls for a folder in memory that is empty, and to which
// files can be written only while it is open. There are no files to read.

const SUCCESS = 0;
const NO_ACCESS = 2; // EACCES
const BAD_FILE = 8; // EBADF
const NO_ENTRY = 44; // ENOENT

const FOLDER = 3; // the file number of the first folder, by which WASI's programs find all others
const FOLDER_NAME = '/';
const IS_FOLDER = 3; // of WASI's kinds of files
const IS_REGULAR = 4;
const CREATE = 1; // of the flags of path_open
const ALL_RIGHTS = 2n ** 64n - 1n;

// What was written to a file, in parts.
class WrittenFile {
  readonly #parts: Uint8Array[] = [];

  write(bytes: Uint8Array): void {
    this.#parts.push(bytes.slice());
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(this.#parts.reduce((size, part) => size + part.length, 0));
    let at = 0;
    for (const part of this.#parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }
}

export class WrittenFiles {
  #isOpen = false;
  #files = new Map<string, WrittenFile>();
  // By file number; the folder itself is undefined.
  readonly #opened = new Map<number, WrittenFile | undefined>([[FOLDER, undefined]]);
  readonly calls: Record<string, (...args: never[]) => number>;

  constructor(memory: WebAssembly.Memory) {
    const view = () => new DataView(memory.buffer);
    const text = (address: number, size: number) =>
      new TextDecoder().decode(new Uint8Array(memory.buffer, address, size).slice());
    const status = (file: number) => (this.#opened.has(file) ? SUCCESS : BAD_FILE);
    const kindOf = (file: number) => (this.#opened.get(file) ? IS_REGULAR : IS_FOLDER);
    this.calls = {
      fd_prestat_get(file: number, out: number): number {
        if (file !== FOLDER) return BAD_FILE;
        view().setUint8(out, 0);
        view().setUint32(out + 4, FOLDER_NAME.length, true);
        return SUCCESS;
      },
      fd_prestat_dir_name(file: number, address: number): number {
        if (file !== FOLDER) return BAD_FILE;
        view().setUint8(address, FOLDER_NAME.charCodeAt(0));
        return SUCCESS;
      },
      fd_fdstat_get: (file: number, out: number): number => {
        if (!this.#opened.has(file)) return BAD_FILE;
        view().setUint32(out, kindOf(file), true);
        view().setBigUint64(out + 8, ALL_RIGHTS, true);
        view().setBigUint64(out + 16, ALL_RIGHTS, true);
        return SUCCESS;
      },
      path_open: (
        _folder: number,
        _lookup: number,
        address: number,
        size: number,
        flags: number,
        _rights: bigint,
        _inherited: bigint,
        _mode: number,
        out: number,
      ): number => {
        const name = text(address, size);
        const isFolder = name === '.';
        if (!isFolder && !(flags & CREATE)) return NO_ENTRY;
        if (!this.#isOpen) return NO_ACCESS;
        const number = Math.max(...this.#opened.keys()) + 1;
        const written = isFolder ? undefined : new WrittenFile();
        if (written !== undefined) this.#files.set(name, written);
        this.#opened.set(number, written);
        view().setUint32(out, number, true);
        return SUCCESS;
      },
      path_rename: (
        _from: number,
        address: number,
        size: number,
        _to: number,
        newAddress: number,
        newSize: number,
      ): number => {
        const name = text(address, size);
        const written = this.#files.get(name);
        if (written === undefined) return NO_ENTRY;
        this.#files.delete(name);
        this.#files.set(text(newAddress, newSize), written);
        return SUCCESS;
      },
      path_unlink_file: (_folder: number, address: number, size: number): number =>
        this.#files.delete(text(address, size)) ? SUCCESS : NO_ENTRY,
      path_filestat_get: () => NO_ENTRY,
      fd_sync: status,
      fd_fdstat_set_flags: status,
      fd_close: (file: number): number =>
        file !== FOLDER && this.#opened.delete(file) ? SUCCESS : BAD_FILE,
    };
  }

  // What the module writes to, by file number.
  writer(file: number): WrittenFile | undefined {
    return this.#opened.get(file);
  }

  open(): void {
    this.#isOpen = true;
    this.#files = new Map();
  }

  // The files that were written, by name. Later ones are refused.
  close(): Map<string, Uint8Array<ArrayBuffer>> {
    const files = this.#files;
    this.#isOpen = false;
    this.#files = new Map();
    return new Map([...files].map(([name, written]) => [name, written.bytes]));
  }
}
