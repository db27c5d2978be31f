// Text, and binary formats whose content is not compressed. Streams of events are excluded, which clients
// read while they arrive, and woff2, images, audio, video and archives, which are compressed already.
const COMPRESSIBLE = new RegExp(
  [
    '^text/(?!event-stream)',
    '^application/(?:.*\\+)?(?:json|xml)$',
    '^application/(?:javascript|ecmascript|x-javascript|manifest|wasm|rtf|sql|toml|yaml|x-sh|x-ndjson|geo|ld|dash)\\b',
    '^application/(?:postscript|vnd\\.ms-fontobject|vnd\\.apple\\.mpegurl|x-font-ttf|x-httpd-php|x-tar|x-web-app)\\b',
    '^font/(?:ttf|otf|collection)$',
    '^image/(?:svg\\+xml|bmp|x-ms-bmp|x-icon|vnd\\.microsoft\\.icon)$',
    '^model/(?:gltf\\+json|obj|mtl|stl|vrml)$',
  ].join('|'),
  'i',
);

/** Whether files of a media type become smaller by compression. */
export function isCompressibleType(contentType: string): boolean {
  return COMPRESSIBLE.test(contentType.split(';', 1)[0] as string);
}
