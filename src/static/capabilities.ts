import type { ServerResponse } from 'node:http';
import type { Dependency, Files } from './files.ts';
import type { StaticSettings } from './options.ts';
import type { HeaderList, Representation } from './representation.ts';
import type { FileRequest } from './request.ts';

/** What `staticFiles` can do without. Nobody but middleware/static.ts knows who does it. */
export interface Capabilities {
  /** Creates the pages of a directory or source. */
  readonly createPages?: ((files: Files, settings: StaticSettings) => PageMaker) | undefined;
  readonly limitLifetime?: FileRequest['context']['limitLifetime'];
}

/** Changes HTML files. */
export interface PageMaker {
  /** The path of the mount. Undefined until the first request. */
  mount: string | undefined;
  accepts(path: string): boolean;
  /**
   * @param filePath - the path below the root
   * @param urlPath - what its URLs are relative to
   */
  render(filePath: string, bytes: Buffer, urlPath?: string): Promise<RenderedPage>;
}

/** A page with its additions: a representation of its own. */
export interface RenderedPage {
  readonly body: Buffer;
  /** Identifies the bytes and the headers. */
  readonly etag: string;
  readonly headers: HeaderList;
  /** Scripts and styles whose hashes the page contains, unless their names say that they never change. */
  readonly dependencies: readonly Dependency[];
  readonly additions: PageAdditions;
}

/** The additions of one rendered page that depend on its response. */
export interface PageAdditions {
  /** Whether each response has another nonce. */
  readonly hasNonce: boolean;
  isCurrent(): boolean;
  /** Adds the sources of this page to policies that other code has set. A second policy would be another restriction. */
  extendPolicies(res: ServerResponse): void;
  /** The headers of the page with those of the option `rules`, whose names are in lower case: their policies are extended. */
  headersWith(own: HeaderList, added?: HeaderList): HeaderList;
  /** Sends the page with a new nonce. Such a response has no validators, and no cache may store it. */
  sendWithNonce(request: FileRequest, representation: Representation): void;
}
