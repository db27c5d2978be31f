// Reports a run of Jest for scripts/test.mjs: progress for people, and a file with the results of each test file. What
// tests write to the console is kept only for files that fail.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Lines of progress in one run, where the output is not a terminal. */
const STEPS = 8;

export default class Reporter {
  #root;
  #done = 0;
  #shown = 0;
  #failed = 0;
  #running = new Set();
  #results = [];

  constructor({ rootDir }) {
    this.#root = rootDir;
    process.once('SIGTERM', () => {
      for (const file of this.#running) this.#add({ file, failed: 1, text: 'It did not end in time.' });
      this.onRunComplete();
      process.exit(1);
    });
  }

  onTestFileStart({ path }) {
    this.#running.add(this.#nameOf(path));
  }

  onTestFileResult({ path }, result, { numTotalTestSuites: total, startTime }) {
    const file = this.#nameOf(path);
    const { failureMessage, testExecError, numPassingTests, numFailingTests, testResults, perfStats } =
      result;
    const failed = numFailingTests + (testExecError ? 1 : 0);
    this.#running.delete(file);
    this.#done += 1;
    this.#add({
      file,
      passed: numPassingTests,
      failed,
      milliseconds: perfStats.runtime,
      cpuMilliseconds: result.cpuMilliseconds,
      failures: testResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
      text: failed > 0 ? `${failureMessage ?? ''}${consoleOf(result)}` : '',
    });
    const seconds = Math.round((Date.now() - startTime) / 1000);
    if (failed > 0) {
      this.#failed += 1;
      this.#write(`failed: ${file}\n`);
    }
    if (process.stdout.isTTY || this.#done - this.#shown >= total / STEPS || this.#done === total) {
      this.#shown = this.#done;
      this.#write(`${this.#done} of ${total} files, ${this.#failed} failed, ${seconds} s`);
      if (!process.stdout.isTTY || this.#done === total) process.stdout.write('\n');
    }
  }

  /** Adds the result of a file. */
  #add(result) {
    this.#results.push({ passed: 0, milliseconds: 0, cpuMilliseconds: 0, failures: [], ...result });
  }

  onRunComplete() {
    writeFileSync(process.env.TEST_REPORT, JSON.stringify(this.#results));
  }

  /** Writes text in place of the progress, which a terminal shows in one line. */
  #write(text) {
    process.stdout.write(process.stdout.isTTY ? `\r\x1b[K${text}` : text);
  }

  #nameOf(path) {
    return relative(this.#root, path).replaceAll('\\', '/');
  }
}

/** What the tests of a file wrote to the console. */
function consoleOf({ console: entries }) {
  if (!entries?.length) return '';
  return `\nConsole:\n${entries.map(({ type, message }) => `${type}: ${message}`).join('\n')}\n`;
}
