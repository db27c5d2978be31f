declare module 'meros/browser' {
  export * from 'meros';
}
