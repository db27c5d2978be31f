import EditorWorker from 'monaco-editor/esm/vs/editor/editor.worker.js?worker';
import JsonWorker from 'monaco-editor/esm/vs/language/json/json.worker.js?worker';
import GraphQLWorker from 'monaco-graphql/esm/graphql.worker.js?worker';

// Monaco asks for its workers by label; the policy allows only those that are files of our own.
self.MonacoEnvironment = {
  getWorker(_id: string, label: string): Worker {
    if (label === 'graphql') return new GraphQLWorker();
    return label === 'json' ? new JsonWorker() : new EditorWorker();
  },
};
