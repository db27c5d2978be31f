import { realpath, stat } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LRUCache } from 'lru-cache';
import type { ConnectRequest, MaybePromise, NextFunction } from '../../types/connect.ts';
import type { RootChooser } from '../../types/static.ts';
import { packages } from '../diagnostics/packages.ts';
import { cacheByText } from '../http/negotiation.ts';
import { toError } from '../http/reply.ts';
import { optionError, wrongReturnValue } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { caught, isString, settle } from '../options/values.ts';
import { createHandler, type Shared, type StaticHandler } from './handler.ts';
import type { StaticSettings } from './options.ts';
import { isServedName } from './path.ts';
import { isFinished, type NotServed, passThrough, type RequestTriple } from './request.ts';
import { isNotFoundError, RootDirectory, resolveRoot, withSeparator } from './root.ts';

interface Folder {
  readonly kind: 'folder';
  readonly path: string;
  readonly handler: StaticHandler;
}

type Choice =
  | Folder
  | { readonly kind: 'failed'; readonly error: unknown }
  | (NotServed & { readonly kind: 'none' });

const NO_FOLDER: Choice = { kind: 'none', reason: 'the function has named no folder below the option roots' };
// Folders whose files are cached at the same time.
const MAX_OPEN = 100;

/**
 * The folders that a function chooses for each request, each with a cache of its own below the limits of the middleware. The most
 * recently used ones stay open; a folder that is gone, or that must make room, is let go.
 */
export class Roots implements StaticHandler {
  readonly #choose: RootChooser;
  readonly #parent: string;
  readonly #settings: StaticSettings;
  readonly #shared: Shared;
  readonly #open: LRUCache<string, Folder>;
  readonly #pathOfName: (name: string) => string | undefined;
  #isClosed = false;

  constructor(choose: RootChooser, settings: StaticSettings, shared: Shared) {
    const { keep, roots } = settings;
    if (keep !== undefined)
      throw optionError(
        STATIC_OPTIONS,
        'option "keep" keeps the files of one directory, but a function chooses it; create a middleware for the directory',
      );
    if (roots === undefined)
      throw optionError(
        STATIC_OPTIONS,
        'a function chooses the directory, which needs the option "roots"; set it to the directory that contains all of them',
      );
    this.#choose = choose;
    this.#parent = resolveRoot(roots, settings).path;
    // A folder may appear before its pages, and after the call.
    this.#settings = { ...settings, missing: 'allow' };
    this.#shared = shared;
    this.#pathOfName = cacheByText((name) => this.#below(resolve(this.#parent, name)));
    const { LRUCache: Folders } = packages.lruCache();
    // Requests that a folder is answering continue.
    this.#open = new Folders<string, Folder>({
      max: MAX_OPEN,
      dispose: ({ handler }: Folder) => handler.close(),
    });
  }

  handle(req: ConnectRequest, res: ServerResponse, next: NextFunction): void {
    const request = { req, res, next };
    const choice = caught<Choice>(
      () => settle(this.#choose(req), (given) => this.#folderAt(this.#pathOf(given))),
      (error) => ({ kind: 'failed', error }),
    );
    void settle(choice, (chosen) => this.#serve(request, chosen));
  }

  close(): void {
    this.#isClosed = true;
    this.#open.clear();
  }

  #pathOf(given: unknown): string | undefined {
    if (given === undefined) return undefined;
    if (!isString(given) && !(given instanceof URL && given.protocol === 'file:'))
      throw wrongReturnValue(STATIC_OPTIONS, 'dir', given, 'a path below roots, or undefined');
    return isString(given) ? this.#pathOfName(given) : this.#below(fileURLToPath(given));
  }

  /** The path of a folder below the parent; undefined for any other place, whatever the name was made of. */
  #below(path: string): string | undefined {
    const above = withSeparator(this.#parent);
    if (!path.startsWith(above)) return undefined;
    const { dotfiles } = this.#settings;
    const isServed = (name: string): boolean =>
      isServedName(name, this.#settings) && (dotfiles === 'allow' || !name.startsWith('.'));
    return path.slice(above.length).split(sep).every(isServed) ? path : undefined;
  }

  #folderAt(path: string | undefined): MaybePromise<Choice> {
    if (path === undefined) return NO_FOLDER;
    return this.#open.get(path) ?? this.#openFolder(path);
  }

  #serve(request: RequestTriple, choice: Choice): void {
    const { req, res, next } = request;
    if (isFinished(res)) return;
    if (choice.kind === 'failed') next(toError(choice.error));
    else if (choice.kind === 'none') passThrough(request, choice, this.#settings);
    else
      choice.handler.handle(req, res, (error) => {
        // Nothing was found: perhaps because the folder is gone.
        void this.#letGoIfMissing(choice.path);
        next(error);
      });
  }

  async #openFolder(path: string): Promise<Choice> {
    if (!(await this.#isFolder(path)) || this.#isClosed) return NO_FOLDER;
    // Another request may have opened it meanwhile.
    const opened = this.#open.get(path);
    if (opened !== undefined) return opened;
    for (const other of this.#open.keys()) void this.#letGoIfMissing(other);
    const root = new RootDirectory(path, this.#settings.followSymlinks);
    const handler = createHandler(root, this.#settings, this.#shared);
    const folder = { kind: 'folder', path, handler } as const;
    this.#open.set(path, folder);
    return folder;
  }

  /** Whether there is a folder, which a symbolic link may not place outside of the parent unless links are followed. */
  async #isFolder(path: string): Promise<boolean> {
    try {
      if (!(await stat(path)).isDirectory()) return false;
      const above = withSeparator(await realpath(this.#parent));
      return this.#settings.followSymlinks || (await realpath(path)).startsWith(above);
    } catch (error) {
      if (isNotFoundError(error)) return false;
      throw error;
    }
  }

  async #letGoIfMissing(path: string): Promise<void> {
    // A disk that cannot be read now is no reason to forget the folder.
    if (!(await this.#isFolder(path).catch(() => true))) this.#open.delete(path);
  }
}
