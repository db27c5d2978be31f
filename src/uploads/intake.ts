import type { Readable } from 'node:stream';
import type { UploadedFileInfo } from '../../types/uploads.ts';
import { toError } from '../http/reply/to-error.ts';
import { assertSync } from '../options/assert-sync.ts';
import { UPLOAD_OPTIONS } from '../options/scopes.ts';
import { createUploadedFile } from './file.ts';
import { cleanFilename } from './filename.ts';
import type { FilePart, FormHandlers } from './form.ts';
import { type CheckOperations, makePlan, type Plan, readMap, readOperations } from './plan.ts';
import {
  duplicateField,
  earlyFile,
  fileMissing,
  fileTooLarge,
  missingField,
  notAccepted,
  readerError,
  refusalOf,
  storageError,
  withoutFilename,
} from './refusal.ts';
import type { UploadSettings } from './settings.ts';
import { Spool } from './spool.ts';

/** How an intake comes to its end: with operations to run, or a refusal. */
export interface IntakeOutcome {
  run(operations: unknown): void;
  refuse(error: Error): void;
}

/** Takes in one form: text parts become the plan, file parts go into spools and to their places in the operations. */
export class Intake implements FormHandlers {
  readonly #settings: UploadSettings;
  readonly #check: CheckOperations;
  readonly #outcome: IntakeOutcome;
  readonly #spools = new Map<string, Spool>();
  #operations: unknown;
  #map: Record<string, string[]> | undefined;
  #plan: Plan | undefined;
  #running = false;
  #over = false;

  constructor(settings: UploadSettings, check: CheckOperations, outcome: IntakeOutcome) {
    this.#settings = settings;
    this.#check = check;
    this.#outcome = outcome;
  }

  field(name: string | undefined, value: string, truncated: boolean): void {
    this.#guard(() => {
      if (name === undefined) throw refusalOf({ code: 'MISSING_FIELD_NAME' }, this.#settings);
      if (truncated) throw refusalOf({ code: 'LIMIT_FIELD_VALUE', field: name }, this.#settings);
      if (name === 'operations') {
        if (this.#operations !== undefined) throw duplicateField(name);
        this.#operations = readOperations(value, this.#settings.maxValues);
        this.#check(this.#operations);
      } else if (name === 'map') {
        if (this.#map !== undefined) throw duplicateField(name);
        this.#map = readMap(value, this.#settings.maxFiles);
      } else if (this.#plan?.files.has(name)) throw withoutFilename(name);
      this.#prepare();
    });
  }

  unnamed(name: string | undefined): void {
    this.#guard(() => {
      if (name === undefined) throw refusalOf({ code: 'MISSING_FIELD_NAME' }, this.#settings);
      if (this.#plan === undefined || this.#plan.files.has(name)) throw withoutFilename(name);
    });
  }

  file(part: FilePart, stored: () => void): void {
    part.stream.on('error', () => {});
    this.#guard(() => {
      if (this.#plan === undefined) throw earlyFile(part.fieldname);
      const slots = this.#plan.files.get(part.fieldname);
      // Not in the map, or there already: received and thrown away.
      if (slots === undefined || this.#spools.has(part.fieldname)) {
        part.stream.on('end', stored).resume();
        return;
      }
      const info = describe(part);
      if (!assertSync(this.#settings.accept(info), UPLOAD_OPTIONS, 'accept')) throw notAccepted(info);
      const spool = new Spool(this.#settings);
      this.#spools.set(part.fieldname, spool);
      const file = createUploadedFile(info, spool);
      for (const { holder, key } of slots) holder[key] = file;
      this.#store(part.stream, spool, info, stored);
      if (this.#settings.streaming) this.#runWhenReady();
    });
  }

  end(): void {
    this.#guard(() => {
      if (this.#operations === undefined) throw missingField('operations');
      if (this.#map === undefined) throw missingField('map');
      const absent = [...(this.#plan as Plan).files.keys()].find((name) => !this.#spools.has(name));
      if (absent !== undefined) throw fileMissing(absent);
      this.#runWhenReady();
    });
  }

  fail(error: unknown): void {
    this.#guard(() => {
      throw refusalOf(error, this.#settings);
    });
  }

  /** Nothing more is taken in; files that did not come whole fail for those who read them. */
  stop(error: Error): void {
    this.#over = true;
    for (const spool of this.#spools.values()) {
      if (!spool.complete) spool.fail(readerError(error));
    }
  }

  /** Gives up everything received. */
  release(): void {
    this.#over = true;
    for (const spool of this.#spools.values()) spool.release();
  }

  #guard(step: () => void): void {
    if (this.#over) return;
    try {
      step();
    } catch (error) {
      this.#outcome.refuse(toError(error));
    }
  }

  #prepare(): void {
    if (this.#plan !== undefined || this.#operations === undefined || this.#map === undefined) return;
    this.#plan = makePlan(this.#operations, this.#map);
    if (this.#settings.streaming) this.#runWhenReady();
  }

  #runWhenReady(): void {
    if (this.#running || this.#plan === undefined || this.#spools.size < this.#plan.files.size) return;
    this.#running = true;
    this.#outcome.run(this.#operations);
  }

  #store(stream: Readable, spool: Spool, info: UploadedFileInfo, stored: () => void): void {
    const { maxFileSize } = this.#settings;
    spool.onRoom = () => {
      stream.resume();
    };
    stream.on('data', (chunk: Buffer) => {
      if (this.#over) return;
      if (spool.error !== undefined) this.#outcome.refuse(storageError(spool.error));
      else if (spool.size + chunk.length > maxFileSize) this.#outcome.refuse(fileTooLarge(info, maxFileSize));
      else if (!spool.write(chunk)) stream.pause();
    });
    stream.on('end', () =>
      spool.end(() => {
        if (spool.complete) stored();
        else if (!this.#over) this.#outcome.refuse(storageError(spool.error as Error));
      }),
    );
  }
}

function describe(part: FilePart): UploadedFileInfo {
  return {
    filename: cleanFilename(part.originalname),
    mimetype: part.mimetype,
    encoding: part.encoding,
    fieldName: part.fieldname,
  };
}
