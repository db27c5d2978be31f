import type { IncomingMessage } from 'node:http';
import { extname } from 'node:path';

const HTML_TYPE = /(?:^|,)\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*(?:,|$))[^,]*)?(?=,|$)/i;

// Extensions of files that pages load or link to, and of scripts that other servers run. The list is fixed: a
// route may end like a domain (`/users/jane@example.com`) or a version, and many of these endings have a
// media type too.
const ASSETS = new Set(
  [
    'js mjs cjs jsx ts mts cts tsx css scss less map wasm json json5 jsonld webmanifest xml txt csv md rss atom yaml yml',
    'png jpg jpeg gif webp avif svg ico bmp tif tiff heic heif jxl apng cur woff woff2 ttf otf eot',
    'mp3 mp4 m4a m4v mov webm weba ogg ogv oga opus wav flac aac avi mkv m3u8 mpd vtt srt glb gltf',
    'pdf zip gz br zst tgz tar bz2 xz 7z rar jar exe dmg pkg msi deb rpm apk iso bin doc docx xls xlsx ppt pptx',
    'php asp aspx jsp cgi',
  ].flatMap((line) => line.split(' ').map((extension) => `.${extension}`)),
);

/** Whether a path may belong to a page: paths with the extension of an asset are not treated as pages. */
export function mayBePage(path: string): boolean {
  return !ASSETS.has(extname(path).toLowerCase());
}

/**
 * Whether a request is a page navigation: the browser sends `Sec-Fetch-Mode: navigate`, or `Accept` contains
 * `text/html`, which browsers send for pages but not for scripts, styles or images.
 */
export function isNavigation(req: IncomingMessage): boolean {
  return req.headers['sec-fetch-mode'] === 'navigate' || HTML_TYPE.test(req.headers.accept ?? '');
}
