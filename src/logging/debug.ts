/** Writes a line to the debug output of one area; `%s`, `%j` and `%O` are replaced by the values. */
type Logger = (format: string, ...values: readonly unknown[]) => void;

/**
 * Loggers of refused requests, by area. A logger writes only if `DEBUG` names its area (`DEBUG=espalier:*`).
 */
export const debug: Record<'static' | 'graphql' | 'uploads' | 'subscriptions' | 'server', Logger> = {
  static: createLogger('espalier:static'),
  graphql: createLogger('espalier:graphql'),
  uploads: createLogger('espalier:uploads'),
  subscriptions: createLogger('espalier:subscriptions'),
  server: createLogger('espalier:server'),
};

/**
 * Creates a logger that loads the package `debug` when it is first enabled. `debug.enable` sets the variable
 * too.
 */
function createLogger(area: string): Logger {
  let write: Logger | undefined;
  return (format, ...values) => {
    if (process.env['DEBUG'] === undefined) return;
    if (write !== undefined) {
      write(format, ...values);
      return;
    }
    import('debug')
      .then(({ default: createDebug }) => {
        write ??= createDebug(area);
        write(format, ...values);
      })
      // Without the package there is no debug output.
      .catch(() => {});
  };
}
