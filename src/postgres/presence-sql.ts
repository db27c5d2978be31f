/** Microseconds since 1970. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

const PRESENCE = `
CREATE TABLE IF NOT EXISTS "{schema}".members (
  channel text NOT NULL,
  key text COLLATE "C" NOT NULL,
  text text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (channel, key)
);
CREATE OR REPLACE FUNCTION "{schema}".presence(topic text, keys text[], was text[], texts text[], event text)
RETURNS boolean LANGUAGE plpgsql AS $presence$
BEGIN
  -- With another level, it would not see what others commit while it waits.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'presence needs READ COMMITTED' USING ERRCODE = '40001';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtext('{schema}.presence'), hashtext(topic));
  IF EXISTS (
    SELECT 1 FROM unnest(keys, was) i(key, text) LEFT JOIN "{schema}".members m ON m.channel = topic AND m.key = i.key
    WHERE coalesce(m.text, '') <> i.text
  ) THEN RETURN false; END IF;
  DELETE FROM "{schema}".members m WHERE m.channel = topic AND m.key = ANY(keys);
  INSERT INTO "{schema}".members
  SELECT topic, i.key, i.text FROM unnest(keys, texts) i(key, text) WHERE i.text <> '';
  IF event IS NOT NULL THEN PERFORM "{schema}".publish(topic, event); END IF;
  RETURN true;
END
$presence$;
`;

/** Returns the SQL of the table and the function for presence. */
export const presenceFor = (schema: string): string => PRESENCE.replaceAll('{schema}', schema);

/**
 * Returns the statements: a write with the arguments of the function, a read of channel $1 and the keys $2, or all, and the
 * removal of what crashed processes have left before $1 milliseconds; $2 is not used.
 */
export function presenceStatements(schema: string, kept: number): Record<'write' | 'read' | 'sweep', string> {
  const members = `"${schema}".members`;
  // The texts of the processes, of which a used channel has a new one.
  const processes = (channel: string): string =>
    `SELECT key FROM ${members} WHERE channel = ${channel} AND key >= 'p'`;
  const isNew = `at >= clock_timestamp() - ($1::bigint + ${kept}) * interval '1 millisecond'`;
  return {
    write: `SELECT "${schema}".presence($1, $2, $3, $4, $5) AS written`,
    read: `
SELECT ${NOW} AS now, coalesce((SELECT json_agg(json_build_array(key, text)) FROM ${members}
  WHERE channel = $1 AND ($2::text[] IS NULL OR key = ANY($2::text[] || ARRAY(${processes('$1')})))), '[]') AS texts`,
    sweep: `
DELETE FROM ${members} t WHERE NOT ${isNew} AND $2::bigint IS NOT NULL
  AND NOT EXISTS (${processes('t.channel')} AND ${isNew}) RETURNING 1`,
  };
}
