import type { ByteRange } from '../../http/conditions/ranges.ts';
import { describe, type HeaderList, type Representation } from '../file/representation.ts';
import { joinParts, layOutParts } from './byteranges.ts';
import { type Preset, presetOf, writeHead } from './headers.ts';
import type { Exchange, Means } from './request-context.ts';
import { transfer } from './send-adapter.ts';
import { refuse } from './send-status.ts';

/** 200 with all of the bytes. */
export function sendWhole(
  exchange: Exchange,
  representation: Representation,
  means: Means,
  preset: Preset,
): void {
  const { req, res } = exchange;
  const { body, whole, facts } = representation;
  if (req.method === 'HEAD') {
    writeHead(res, 200, whole, preset);
    res.end();
  } else if (body !== undefined) {
    writeHead(res, 200, whole, preset);
    res.end(body);
  } else {
    const section = { start: 0, end: facts.size - 1, before: undefined };
    transfer(
      exchange,
      representation,
      { status: 200, headers: whole, sections: [section], tail: undefined },
      means,
    );
  }
}

/** 206 with one range or several, or 416 when none can be satisfied. */
export function sendRanges(
  exchange: Exchange,
  representation: Representation,
  ranges: readonly ByteRange[],
  means: Means,
): void {
  const [first] = ranges;
  const { size } = representation.facts;
  if (first === undefined) refuse(exchange, 416, { 'Content-Range': `bytes */${size}` });
  else if (ranges.length === 1) sendRange(exchange, representation, first, means);
  else sendParts(exchange, representation, ranges, means);
}

function sendRange(exchange: Exchange, representation: Representation, range: ByteRange, means: Means): void {
  const { facts, body } = representation;
  const { start, end } = range;
  const headers = [
    ...describe(facts, end - start + 1, facts.type),
    'Content-Range',
    `bytes ${start}-${end}/${facts.size}`,
    ...representation.shared,
  ];
  if (body !== undefined) finish(exchange, headers, body.subarray(start, end + 1));
  else {
    const section = { start, end, before: undefined };
    transfer(exchange, representation, { status: 206, headers, sections: [section], tail: undefined }, means);
  }
}

function sendParts(
  exchange: Exchange,
  representation: Representation,
  ranges: readonly ByteRange[],
  means: Means,
): void {
  const { facts, body } = representation;
  const parts = layOutParts(ranges, facts.size, facts.type);
  const headers = [...describe(facts, parts.length, parts.type), ...representation.shared];
  // A type that somebody set before us describes the file; this body is made of parts.
  exchange.res.removeHeader('Content-Type');
  if (body !== undefined) finish(exchange, headers, joinParts(parts, body));
  else {
    const { sections, tail } = parts;
    transfer(exchange, representation, { status: 206, headers, sections, tail }, means);
  }
}

function finish({ res }: Exchange, headers: HeaderList, body: Buffer): void {
  writeHead(res, 206, headers, presetOf(res));
  res.end(body);
}
