/** The build writes this module next to the files of GraphiQL, once for `import` and once for `require`. */
declare module '#graphiql' {
  /** The folder with manifest.json and the files. */
  export const folder: string;
}
