import { IDLE_MILLISECONDS, PAGE_BYTES } from '../pubsub/history.ts';
import { NOW, presenceFor, presenceStatements } from './presence-sql.ts';

/** Milliseconds in which the processes read an event from the table, however many follow. */
const GRACE_MILLISECONDS = 10_000;

/** The rows that one statement removes, so that it holds its locks briefly. */
export const SWEEP_ROWS = 5000;

/**
 * Returns the SQL that creates the tables.
 *
 * `publish` increments the place of the channel under the lock of its row, which is held until the commit. So the events
 * of a channel become visible in the order of their places; those of a sequence would not. An id also has the
 * time, so that an event which a failover or an old backup has lost is not mistaken for the next one with its place. The
 * places of a channel begin with the time too: those of a channel whose row was removed never come again.
 */
export function migrationFor(schema: string): string {
  return `
SELECT pg_advisory_xact_lock(hashtext('espalier:${schema}'));
CREATE SCHEMA IF NOT EXISTS "${schema}";
CREATE TABLE IF NOT EXISTS "${schema}".topics (
  channel text PRIMARY KEY,
  place bigint NOT NULL,
  newest text NOT NULL,
  previous text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS "${schema}".events (
  channel text NOT NULL,
  place bigint NOT NULL,
  id text NOT NULL,
  previous text NOT NULL,
  payload text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (channel, place)
);
CREATE INDEX IF NOT EXISTS events_at ON "${schema}".events (at);
CREATE OR REPLACE FUNCTION "${schema}".publish(name text, event text)
RETURNS text LANGUAGE plpgsql AS $publish$
DECLARE
  micros bigint := ${NOW};
  stamp text := '-' || micros;
  topic "${schema}".topics;
BEGIN
  INSERT INTO "${schema}".topics AS t (channel, place, newest, previous) VALUES (name, micros, micros || stamp, '0' || stamp)
  ON CONFLICT (channel) DO UPDATE SET
    place = t.place + 1, newest = (t.place + 1) || stamp, previous = t.newest, at = clock_timestamp()
  RETURNING * INTO topic;
  INSERT INTO "${schema}".events (channel, place, id, previous, payload)
  VALUES (name, topic.place, topic.newest, topic.previous, event);
  PERFORM pg_notify('${schema}_events', name);
  RETURN topic.newest;
END
$publish$;
${presenceFor(schema)}`;
}

export interface Statements {
  /** The channel of LISTEN. */
  readonly channel: string;
  readonly migration: string;
  /** Whether the function exists. */
  readonly exists: string;
  /** $1: channels, $2: payloads. */
  readonly publish: string;
  /** $1: channels. */
  readonly places: string;
  /**
   * $1: channels, $2: their places, $3: events per channel. A row without an id has only the newest one. A channel
   * without a row did not fit into the page.
   */
  readonly read: string;
  /** $1: channel. */
  readonly newest: string;
  /** Stores the start of a channel without events. $1: channel, $2: its id. */
  readonly begin: string;
  /** $1: channel. */
  readonly extent: string;
  readonly presence: ReturnType<typeof presenceStatements>;
  /** Remove what is too old, and what is too much. $1: milliseconds, $2: events per channel. */
  readonly sweeps: readonly [old: string, many: string, topics: string, members: string];
}

export function statementsFor(schema: string): Statements {
  const [topics, events] = [`"${schema}".topics`, `"${schema}".events`];
  const presence = presenceStatements(schema, IDLE_MILLISECONDS);
  return {
    channel: `${schema}_events`,
    migration: migrationFor(schema),
    // The function that the migration creates last.
    exists: `SELECT to_regprocedure('"${schema}".presence(text, text[], text[], text[], text)') IS NOT NULL AS found`,
    publish: `SELECT "${schema}".publish(i.channel, i.payload) FROM unnest($1::text[], $2::text[]) AS i(channel, payload)`,
    places: `SELECT channel, place FROM ${topics} WHERE channel = ANY($1::text[])`,
    read: `
SELECT channel, newest, place, id, previous, payload FROM (
  SELECT w.channel, w.number, t.newest, e.*,
    coalesce(sum(octet_length(e.payload)) OVER (ORDER BY w.number, e.place) - octet_length(e.payload), 0) AS bytes_before
  FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS w(channel, after, number)
  LEFT JOIN ${topics} t ON t.channel = w.channel
  LEFT JOIN LATERAL (
    SELECT place, id, previous, payload FROM ${events}
    WHERE channel = w.channel AND place > w.after ORDER BY place LIMIT $3
  ) e ON true
) page WHERE bytes_before < ${PAGE_BYTES} ORDER BY number, place`,
    newest: `SELECT newest FROM ${topics} WHERE channel = $1`,
    begin: `
INSERT INTO ${topics} (channel, place, newest, previous) VALUES ($1, ${NOW}, $2, '') ON CONFLICT DO NOTHING`,
    extent: `SELECT count(*)::integer AS length, extract(epoch FROM min(at)) * 1000 AS oldest FROM ${events} WHERE channel = $1`,
    presence,
    sweeps: [...sweepsFor(topics, events), presence.sweep],
  };
}

const sweepsFor = (topics: string, events: string): [old: string, many: string, topics: string] => [
  `
DELETE FROM ${events} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM ${events} WHERE at < clock_timestamp() - $1 * interval '1 millisecond' AND $2::bigint IS NOT NULL
  ORDER BY at LIMIT ${SWEEP_ROWS} FOR UPDATE SKIP LOCKED
)) RETURNING 1`,
  `
DELETE FROM ${events} WHERE ctid = ANY(ARRAY(
  SELECT e.ctid FROM ${topics} t JOIN ${events} e ON e.channel = t.channel AND e.place <= t.place - $2::bigint
  WHERE e.at < clock_timestamp() - least($1, ${GRACE_MILLISECONDS}) * interval '1 millisecond'
  LIMIT ${SWEEP_ROWS} FOR UPDATE OF e SKIP LOCKED
)) RETURNING 1`,
  `
DELETE FROM ${topics} WHERE channel = ANY(ARRAY(
  SELECT channel FROM ${topics}
  WHERE at < clock_timestamp() - ($1 + ${IDLE_MILLISECONDS}) * interval '1 millisecond' AND $2::bigint IS NOT NULL
  LIMIT ${SWEEP_ROWS} FOR UPDATE SKIP LOCKED
)) RETURNING 1`,
];
