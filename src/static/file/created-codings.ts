import { readAndHash } from '../disk/hash.ts';
import { openRealPath } from '../disk/open-inside-root.ts';
import type { RootDirectory } from '../disk/root-directory.ts';
import { createThreadsOf, inThread, type ThreadShare } from '../disk/thread-share.ts';
import type { CodingFactory, FileContent, LoadedFile } from './loaded-file.ts';
import type { Representation } from './representation.ts';
import type { Snapshot } from './snapshot.ts';

/** The codings of one file that are created while it is served, and the headers that they need. */
interface FileCodings {
  /** The value of `Vary`; undefined for a file with one representation. */
  readonly vary: string | undefined;
  readonly useAsDictionary: string | undefined;
  /** @param identity - the representation of the file itself */
  create(realPath: string, identity: Representation): Pick<LoadedFile, 'createdCodings' | 'deltas'>;
}

interface FileToEncode {
  readonly root: RootDirectory;
  /** The path below the root, with slashes. */
  readonly filePath: string;
  readonly type: string;
  readonly cacheControl: string | undefined;
}

/** Decides which codings of a file are created. Files with compressed copies get no others but deltas. */
export function codingsFor(
  { root, filePath, type, cacheControl }: FileToEncode,
  { version, contentEtag }: Pick<Snapshot, 'version' | 'contentEtag'>,
  factory: CodingFactory | undefined,
  { hasCopies }: { readonly hasCopies: boolean },
): FileCodings {
  const size = Number(version.size);
  const accepts = contentEtag !== undefined && factory?.accepts(type, size) === true;
  if (!accepts) return { vary: hasCopies ? ENCODING : undefined, useAsDictionary: undefined, create: none };
  const { deltas } = factory;
  const useAsDictionary = deltas?.headerFor(filePath, cacheControl);
  return {
    vary: useAsDictionary === undefined ? ENCODING : `${ENCODING}, Available-Dictionary`,
    useAsDictionary,
    create: (realPath, identity) => {
      const threads = createThreadsOf(root.mounts, root.localDevice)(filePath, version.dev);
      const content = contentOf(realPath, { size, etag: contentEtag }, threads);
      return {
        createdCodings: hasCopies ? undefined : factory.create(content, identity),
        deltas: useAsDictionary === undefined ? undefined : deltas?.create(filePath, content, identity),
      };
    },
  };
}

const ENCODING = 'Accept-Encoding';
const none: FileCodings['create'] = () => ({ createdCodings: undefined, deltas: undefined });

function contentOf(
  realPath: string,
  { size, etag }: Pick<FileContent, 'size' | 'etag'>,
  threads: ThreadShare | undefined,
): FileContent {
  return { etag, size, read: () => inThread(threads, () => readContent(realPath, size, etag)) };
}

/** Reads a file again; undefined if its content has changed. */
async function readContent(realPath: string, size: number, etag: string): Promise<Buffer | undefined> {
  const file = await openRealPath(realPath);
  if (file === undefined) return undefined;
  try {
    const content = await readAndHash(file.fd, size);
    return content?.etag === etag ? content.body : undefined;
  } finally {
    file.close();
  }
}
