/** Microseconds since 1970. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

/** The tabs of the changed members, by id. */
const TABS = `(SELECT jsonb_object_agg(m.id, m.tabs) FROM (
    SELECT t.id, jsonb_object_agg(t.process, t.data) AS tabs FROM "{schema}".tabs t
    WHERE t.channel = topic AND t.id = ANY(ids) GROUP BY t.id
  ) m)`;

const PRESENCE = `
CREATE TABLE IF NOT EXISTS "{schema}".tabs (
  channel text NOT NULL,
  id text NOT NULL,
  process text NOT NULL,
  data text NOT NULL,
  PRIMARY KEY (channel, id, process)
);
CREATE OR REPLACE FUNCTION "{schema}".presence(topic text, own text, expected text, ids text[], texts text[])
RETURNS boolean LANGUAGE plpgsql AS $presence$
DECLARE
  stamp bigint;
  was jsonb;
  change text;
BEGIN
  -- With another level, it would not see what others commit while it waits.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'presence needs READ COMMITTED' USING ERRCODE = '40001';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtext('{schema}.presence'), hashtext(topic));
  stamp := ${NOW};
  was := ${TABS};
  IF coalesce(split_part(was -> '' ->> own, ' ', 2), '') <> expected THEN RETURN false; END IF;
  DELETE FROM "{schema}".tabs t WHERE t.channel = topic AND t.process = own AND t.id = ANY(ids);
  INSERT INTO "{schema}".tabs
  SELECT topic, i.id, own, stamp || ' ' || i.text FROM unnest(ids, texts) i(id, text) WHERE i.text IS NOT NULL;
  SELECT json_agg(json_build_array(i.id, coalesce(was -> i.id, '{}'), coalesce(s.shown -> i.id, '{}'))) INTO change
  FROM unnest(ids) i(id), (SELECT ${TABS}) s(shown) WHERE i.id <> '' AND was -> i.id IS DISTINCT FROM s.shown -> i.id;
  IF change IS NOT NULL THEN PERFORM "{schema}".publish(topic, change); END IF;
  RETURN true;
END
$presence$;
`;

/** Returns the SQL of the table and the function for presence. */
export const presenceFor = (schema: string): string => PRESENCE.replaceAll('{schema}', schema);

type Statement = 'update' | 'read' | 'sweep';

/**
 * Returns the statements: an update with the arguments of the function, a read of channel $1, and the removal of what
 * crashed processes have left before $1 milliseconds; $2 is not used.
 */
export function presenceStatements(schema: string, kept: number): Record<Statement, string> {
  const tabs = `"${schema}".tabs`;
  const snapshot = (condition: string): string => `${NOW} AS now, coalesce((
  SELECT json_agg(json_build_array(id, tabs)) FROM (
    SELECT id, json_object_agg(process, data) AS tabs FROM ${tabs} WHERE channel = $1 AND ${condition} GROUP BY id
  ) m), '[]') AS tabs`;
  return {
    update: `SELECT "${schema}".presence($1, $2, $3, $4, $5) AS applied, ${snapshot("id = ''")}`,
    read: `SELECT true AS applied, ${snapshot('true')}`,
    sweep: `
DELETE FROM ${tabs} t USING ${tabs} v WHERE v.id = '' AND v.channel = t.channel AND v.process = t.process
  AND split_part(v.data, ' ', 1)::bigint < ${NOW} - ($1::bigint + ${kept}) * 1000 AND $2::bigint IS NOT NULL RETURNING 1`,
  };
}
