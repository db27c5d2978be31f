import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';

/** Writes the files that the server of the soak serves. */
export function writeSite(folder) {
  for (const name of ['site', 'uploads']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'site/small.css'), 'body { color: red }\n'.repeat(100));
  writeFileSync(join(folder, 'site/big.bin'), Buffer.alloc(12 << 20, 'x'));
  const page = Buffer.from('p { color: red }\n'.repeat(500));
  const stored = Buffer.alloc(3 << 20, 'z');
  writeFileSync(
    join(folder, 'site.zip'),
    zip([
      { name: 'page.css', bytes: page, data: deflateRawSync(page), method: 8 },
      { name: 'stored.bin', bytes: stored, data: stored, method: 0 },
    ]),
  );
}

function zip(entries) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const { name, bytes, data, method } of entries) {
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(method, 4);
    common.writeUInt16LE(0x21, 8);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(name.length, 22);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), data]);
    directory.push(
      Buffer.concat([Buffer.from('PK\x01\x02\x14\x00', 'latin1'), common, rest, Buffer.from(name)]),
    );
    parts.push(local);
    offset += local.length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(list.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, list, Buffer.from('PK\x05\x06'), end]);
}
