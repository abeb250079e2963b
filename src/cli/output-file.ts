import { accessSync, constants, existsSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { UsageError } from './command.js';

/**
 * A file that a command is to write when it has its results. Throws where that cannot be, or would replace the model,
 * before anything is done.
 */
export class OutputFile {
  readonly #plain: boolean;

  constructor(
    readonly path: string,
    model: string,
  ) {
    if (path === '') throw new UsageError('--out takes the name of a file');
    const there = statSync(path, { throwIfNoEntry: false });
    const source = statSync(model, { throwIfNoEntry: false });
    if (there?.isDirectory()) throw new UsageError(`--out takes the name of a file, and ${path} is a folder`);
    if (there && source && there.dev === source.dev && there.ino === source.ino) {
      throw new UsageError(`--out ${path} is the model: name another file`);
    }
    const folder = dirname(path);
    if (!existsSync(folder)) throw new UsageError(`--out ${path}: there is no folder ${folder}`);
    accessSync(there ? path : folder, constants.W_OK);
    this.#plain = there?.isFile() ?? true;
  }

  /** Writes all or nothing, where it is a file and no device. */
  write(text: string): void {
    if (!this.#plain) return writeFileSync(this.path, text);
    const beside = `${this.path}.${process.pid}.part`;
    try {
      writeFileSync(beside, text);
      renameSync(beside, this.path);
    } catch (error) {
      rmSync(beside, { force: true });
      throw error;
    }
  }
}
