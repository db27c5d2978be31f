/** Microseconds since 1970. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

/** The data that each of the changed members has, by its id. */
const shown = (condition: string): string => `(
    SELECT coalesce(jsonb_object_agg(s.id, s.data), '{}') FROM (
      SELECT DISTINCT ON (m.id) m.id, m.data FROM "{schema}".members m
      WHERE m.channel = name AND m.id = ANY(touched) AND ${condition}
      ORDER BY m.id, m.stamp DESC, m.process DESC
    ) s)`;

const list = (data: string, condition: string): string => `coalesce((
    SELECT string_agg('{"id":' || to_json(t.id)::text || ',"data":' || (${data} ->> t.id) || '}', ',')
    FROM unnest(touched) t(id) WHERE ${data} ->> t.id IS NOT NULL AND ${condition}), '')`;

// Times are milliseconds since 1970. A process whose updates were interrupted removes no other one for its lifetime: if
// PostgreSQL was stopped, all were cut off.
const PRESENCE = `
CREATE TABLE IF NOT EXISTS "{schema}".members (
  channel text NOT NULL,
  id text NOT NULL,
  process text NOT NULL,
  data text NOT NULL,
  stamp bigint NOT NULL,
  PRIMARY KEY (channel, id, process)
);
CREATE TABLE IF NOT EXISTS "{schema}".processes (
  channel text NOT NULL,
  process text NOT NULL,
  version bigint NOT NULL,
  last bigint NOT NULL,
  since bigint NOT NULL,
  before bigint NOT NULL,
  lifetime bigint NOT NULL,
  PRIMARY KEY (channel, process)
);
CREATE OR REPLACE FUNCTION "{schema}".presence(
  name text, own text, expected bigint, next bigint, lives bigint, grace bigint, is_full boolean, ids text[], texts text[]
) RETURNS boolean LANGUAGE plpgsql AS $presence$
DECLARE
  known "{schema}".processes;
  now_ms bigint;
  revived boolean;
  dead text[];
  touched text[];
  was jsonb;
  last_shown jsonb;
  is_shown jsonb;
  change text;
BEGIN
  -- With another level, it would not see what others commit while it waits.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'presence needs READ COMMITTED' USING ERRCODE = '40001';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtext('{schema}.presence'), hashtext(name));
  now_ms := ${NOW} / 1000;
  SELECT * INTO known FROM "{schema}".processes p WHERE p.channel = name AND p.process = own;
  revived := coalesce(now_ms - known.last > known.lifetime, false);
  -- Others may have read without the members of a process that was silent for its lifetime: it names them again.
  IF (coalesce(known.version, 0) <> expected OR revived) AND NOT is_full THEN RETURN false; END IF;
  IF known.process IS NULL THEN
    known.since := now_ms;
    known.before := 0;
  ELSIF now_ms - known.last > grace THEN
    known.since := now_ms;
    known.before := known.last;
  END IF;
  SELECT coalesce(array_agg(p.process), '{}') INTO dead FROM "{schema}".processes p
  WHERE p.channel = name AND p.process <> own AND now_ms - p.last > p.lifetime;
  touched := ARRAY(
    SELECT i.id FROM unnest(ids, texts) i(id, text) WHERE i.text IS NOT NULL
    UNION SELECT m.id FROM "{schema}".members m WHERE m.channel = name AND (
      m.process = own AND (is_full OR m.id = ANY(ids)) OR lives > 0 AND now_ms - known.since >= lives AND m.process = ANY(dead)));
  was := ${shown('NOT m.process = ANY(dead) AND NOT (revived AND m.process = own)')};
  last_shown := ${shown('true')};
  DELETE FROM "{schema}".members m WHERE m.channel = name AND m.process = own AND m.id = ANY(touched)
    AND NOT EXISTS (SELECT 1 FROM unnest(ids, texts) i(id, text) WHERE i.id = m.id AND i.text IS NOT NULL);
  INSERT INTO "{schema}".members AS m (channel, id, process, data, stamp)
  SELECT name, i.id, own, i.text, now_ms FROM unnest(ids, texts) i(id, text) WHERE i.text IS NOT NULL
  ON CONFLICT (channel, id, process) DO UPDATE SET data = excluded.data, stamp = excluded.stamp
  WHERE m.data <> excluded.data;
  IF lives > 0 AND now_ms - known.since >= lives AND dead <> '{}' THEN
    DELETE FROM "{schema}".members m WHERE m.channel = name AND m.process = ANY(dead);
    DELETE FROM "{schema}".processes p WHERE p.channel = name AND p.process = ANY(dead);
  END IF;
  IF lives > 0 THEN
    INSERT INTO "{schema}".processes AS p VALUES (name, own, next, now_ms, known.since, known.before, lives)
    ON CONFLICT (channel, process) DO UPDATE SET version = excluded.version, last = excluded.last,
      since = excluded.since, before = excluded.before, lifetime = excluded.lifetime;
  ELSE
    DELETE FROM "{schema}".processes p WHERE p.channel = name AND p.process = own;
  END IF;
  is_shown := ${shown('true')};
  change := '{"joined":[' || ${list('is_shown', '(is_shown ->> t.id) IS DISTINCT FROM (was ->> t.id)')}
    || '],"left":[' || ${list('last_shown', '(is_shown ->> t.id) IS NULL')} || ']}';
  IF change <> '{"joined":[],"left":[]}' THEN PERFORM "{schema}".publish(name, change); END IF;
  RETURN true;
END
$presence$;
`;

/** Returns the SQL of the tables and the function for presence. */
export const presenceFor = (schema: string): string => PRESENCE.replaceAll('{schema}', schema);

export interface PresenceStatements {
  /** The arguments are those of the function. */
  readonly update: string;
  /** $1: channel. */
  readonly read: string;
  /** Removes what crashed processes have left. $1: milliseconds, $2: not used. */
  readonly sweep: string;
}

export function presenceStatements(schema: string, kept: number): PresenceStatements {
  const [members, processes] = [`"${schema}".members`, `"${schema}".processes`];
  return {
    update: `SELECT "${schema}".presence($1, $2, $3, $4, $5, $6, $7, $8, $9) AS applied`,
    read: `
SELECT ${NOW} / 1000 AS now,
  ARRAY(SELECT json_build_object('process', process, 'last', last, 'since', since, 'before', before, 'lifetime', lifetime)
    FROM ${processes} WHERE channel = $1) AS processes,
  ARRAY(SELECT json_build_object('id', id, 'process', process, 'data', data, 'stamp', stamp)
    FROM ${members} WHERE channel = $1) AS entries`,
    sweep: `
WITH gone AS (DELETE FROM ${processes}
  WHERE last < ${NOW} / 1000 - $1 - ${kept} AND $2::bigint IS NOT NULL RETURNING channel, process)
DELETE FROM ${members} m USING gone g WHERE m.channel = g.channel AND m.process = g.process RETURNING 1`,
  };
}
