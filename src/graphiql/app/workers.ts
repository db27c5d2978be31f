import EditorWorker from 'monaco-editor/esm/vs/editor/editor.worker.js?worker';
import JsonWorker from 'monaco-editor/esm/vs/language/json/json.worker.js?worker';
import GraphQLWorker from 'monaco-graphql/esm/graphql.worker.js?worker';

// Monaco requests its workers by label. The policy allows only workers from files of this page.
self.MonacoEnvironment = {
  getWorker(_id: string, label: string): Worker {
    if (label === 'graphql') return new GraphQLWorker();
    return label === 'json' ? new JsonWorker() : new EditorWorker();
  },
};
