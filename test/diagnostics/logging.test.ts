/** @tags once */
import { format } from 'node:util';
import debugPackage from 'debug';
import { createWarningLog, debug } from '../../src/diagnostics/logging.ts';
import { until } from '../until.ts';

it('the debug log escapes control characters of clients, also those from U+0080 to U+009F', async () => {
  const lines: string[] = [];
  const log = jest.spyOn(debugPackage, 'log').mockImplementation((...all) => void lines.push(format(...all)));
  debugPackage.enable('espalier:static');
  debug.static('refused %s: %s', 'https://a\u0085b\u009b2J', 'x\r\ny\u001b[2J');
  await until(() => lines.length > 0);
  debugPackage.disable();
  log.mockRestore();
  expect(lines.join('')).toContain('refused https://a\\x85b\\x9b2J: x\\x0d\\x0ay\\x1b[2J');
});

it('warnings escape control characters', () => {
  const warning = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  createWarningLog({ owner: 'staticFiles', type: 'W', code: 'C' })(
    new Error('the file a\u009b2J.txt\n is lost'),
  );
  expect(warning.mock.calls[0]?.[0]).toBe('staticFiles: the file a\\x9b2J.txt is lost');
  warning.mockRestore();
});
