/** The module that the build writes to dist/template.cjs: the files of examples/starter by path. */
declare module '#template' {
  const template: Readonly<Record<string, string>>;
  export default template;
}
