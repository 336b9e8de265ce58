#include "webnn/row_cases.h"

#include <cmath>
#include <utility>
#include <vector>

namespace tenon::webnn {
namespace {

using B = GraphBuilder;
using Ids = std::vector<ValueId>;

constexpr const char* kMicrosoft = "com.microsoft";

ValueId X(B& b, SymbolicShape shape, const char* name = "x", DataType type = DataType::kFloat) {
  return b.Input(name, type, std::move(shape));
}

ValueId Floats(B& b, Shape shape, float first = 0.25F) {
  std::vector<float> values(static_cast<size_t>(shape.NumElements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = first + 0.125F * static_cast<float>(i % 7);
  }
  return b.Constant(Tensor::Of<float>(std::move(shape), values));
}

Attribute Int(const char* name, int64_t value) { return Attr(name, value); }
Attribute Float(const char* name, float value) { return Attr(name, value); }
Attribute Text(const char* name, const char* value) { return Attr(name, std::string(value)); }
Attribute List(const char* name, std::vector<int64_t> values) {
  return Attr(name, std::move(values));
}
Attribute Texts(const char* name, std::vector<std::string> values) {
  return Attr(name, std::move(values));
}

class Cases {
 public:
  using Build = std::function<void(B& b)>;

  void Claimed(const char* op, const char* name, Build build, int32_t opset = 21,
               const char* domain = "") {
    list_.push_back({op, domain, name, std::move(build), true, opset});
  }
  void Refused(const char* op, const char* name, Build build, int32_t opset = 21,
               const char* domain = "") {
    list_.push_back({op, domain, name, std::move(build), false, opset});
  }
  // Of one input, without attributes.
  void Unary(const char* op, DataType type = DataType::kFloat, int32_t opset = 21,
             const char* domain = "") {
    Claimed(
        op, "plain",
        [op, type, domain](B& b) {
          b.Output(b.Op(op, {X(b, {2, 3}, "x", type)}, {}, domain));
        },
        opset, domain);
  }
  // Of two inputs that are broadcast, and as operators had it before opset 7.
  void Binary(const char* op, DataType type = DataType::kFloat, bool has_old_form = true) {
    Claimed(op, "broadcast", [op, type](B& b) {
      b.Output(b.Op(op, {X(b, {2, 3}, "x", type), X(b, {3}, "y", type)}));
    });
    if (!has_old_form) return;
    Refused(
        op, "old broadcast",
        [op, type](B& b) {
          b.Output(b.Op(op, {X(b, {2, 3}, "x", type), X(b, {2}, "y", type)},
                        MakeAttributes(Int("broadcast", 1), Int("axis", 0))));
        },
        6);
  }

  std::vector<RowCase> Take() { return std::move(list_); }

 private:
  std::vector<RowCase> list_;
};

void AddActivations(Cases& c) {
  for (const char* op : {"Abs",
                         "Ceil",
                         "Cos",
                         "Elu",
                         "Erf",
                         "Exp",
                         "Floor",
                         "HardSigmoid",
                         "HardSwish",
                         "Identity",
                         "LeakyRelu",
                         "Log",
                         "LogSoftmax",
                         "Mish",
                         "Neg",
                         "Reciprocal",
                         "Relu",
                         "Round",
                         "Selu",
                         "Sigmoid",
                         "Sign",
                         "Sin",
                         "Softmax",
                         "Softplus",
                         "Softsign",
                         "Sqrt",
                         "Tan",
                         "Tanh",
                         "ThresholdedRelu",
                         "Celu",
                         "Gelu"}) {
    c.Unary(op);
  }
  c.Unary("Swish", DataType::kFloat, 24);
  c.Unary("QuickGelu", DataType::kFloat, 21, kMicrosoft);
  c.Unary("Gelu", DataType::kFloat, 21, kMicrosoft);
  for (const char* op : {"FastGelu", "BiasGelu"}) {
    c.Claimed(
        op, "bias",
        [op](B& b) {
          b.Output(b.Op(op, {X(b, {2, 3}), Floats(b, {3})}, {}, kMicrosoft));
        },
        21, kMicrosoft);
  }
  c.Claimed("Gelu", "tanh", [](B& b) {
    b.Output(b.Op("Gelu", {X(b, {2, 3})}, MakeAttributes(Text("approximate", "tanh"))));
  });
  c.Claimed("Celu", "alpha", [](B& b) {
    b.Output(b.Op("Celu", {X(b, {2, 3})}, MakeAttributes(Float("alpha", 0.5F))));
  });
  c.Claimed("Elu", "alpha", [](B& b) {
    b.Output(b.Op("Elu", {X(b, {2, 3})}, MakeAttributes(Float("alpha", 0.5F))));
  });
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    c.Claimed(
        op, "flattened",
        [op](B& b) {
          b.Output(b.Op(op, {X(b, {2, 3, 4})}, MakeAttributes(Int("axis", 1))));
        },
        11);
    c.Claimed(op, "axis", [op](B& b) {
      b.Output(b.Op(op, {X(b, {2, 3, 4})}, MakeAttributes(Int("axis", -2))));
    });
  }
  c.Claimed("Clip", "constant bounds", [](B& b) {
    b.Output(b.Op("Clip", {X(b, {2, 3}), b.Scalar(-0.5F), b.Scalar(0.75F)}));
  });
  c.Claimed("Clip", "one bound", [](B& b) {
    b.Output(b.Op("Clip", {X(b, {2, 3}), b.Scalar(0.25F)}));
  });
  c.Claimed(
      "Clip", "attributes",
      [](B& b) {
        b.Output(
            b.Op("Clip", {X(b, {2, 3})}, MakeAttributes(Float("min", -0.5F), Float("max", 0.5F))));
      },
      6);
  c.Refused("Clip", "a bound that is fed", [](B& b) {
    b.Output(b.Op("Clip", {X(b, {2, 3}), X(b, {}, "low")}));
  });
  c.Refused("Clip", "an empty range", [](B& b) {
    b.Output(b.Op("Clip", {X(b, {2, 3}), b.Scalar(1), b.Scalar(0)}));
  });
  c.Claimed("Dropout", "inference", [](B& b) { b.Output(b.Op("Dropout", {X(b, {2, 3})})); });
  c.Refused("Dropout", "training", [](B& b) {
    const ValueId trains = b.Constant(Tensor::Of<bool>({}, {true}));
    b.Output(b.Op("Dropout", {X(b, {2, 3}), b.Scalar(0.5F), trains}));
  });
  c.Refused("Dropout", "mask", [](B& b) {
    for (const ValueId id : b.OpN("Dropout", {X(b, {2, 3})}, 2)) b.Output(id);
  });
}

void AddElementwise(Cases& c) {
  for (const char* op : {"Add", "Div", "Mul", "Pow", "Sub"}) c.Binary(op);
  for (const char* op : {"Max", "Min", "Mean", "Sum"}) {
    c.Claimed(op, "three", [op](B& b) {
      b.Output(b.Op(op, {X(b, {2, 3}), X(b, {3}, "y"), X(b, {2, 1}, "z")}));
    });
  }
  c.Claimed("Pow", "integral exponent", [](B& b) {
    b.Output(b.Op("Pow", {X(b, {2, 3}), b.Constant(Tensor::Of<int64_t>({}, {2}))}));
  });
  c.Claimed("PRelu", "slopes", [](B& b) {
    b.Output(b.Op("PRelu", {X(b, {2, 3}), Floats(b, {3})}));
  });
  c.Refused(
      "PRelu", "old broadcast",
      [](B& b) {
        b.Output(b.Op("PRelu", {X(b, {2, 3, 4}), Floats(b, {3})}));
      },
      6);
  for (const DataType to :
       {DataType::kFloat16, DataType::kInt32, DataType::kInt64, DataType::kBool}) {
    const char* const name = to == DataType::kBool ? "to bool" : "from float";
    c.Claimed("Cast", name, [to](B& b) {
      b.Output(b.Op("Cast", {X(b, {2, 3})}, MakeAttributes(Int("to", static_cast<int64_t>(to)))));
    });
  }
  c.Claimed("CastLike", "to integers", [](B& b) {
    b.Output(b.Op("CastLike", {X(b, {2, 3}), X(b, {1}, "like", DataType::kInt32)}));
  });
  c.Claimed("Cast", "from bool", [](B& b) {
    b.Output(b.Op("Cast", {X(b, {2, 3}, "x", DataType::kBool)}, MakeAttributes(Int("to", 1))));
  });
  c.Refused("Cast", "double", [](B& b) {
    b.Output(b.Op("Cast", {X(b, {2, 3})}, MakeAttributes(Int("to", 11))));
  });
}

void AddComparisons(Cases& c) {
  for (const char* op : {"Equal", "Greater", "Less"}) {
    c.Binary(op, DataType::kFloat, op != std::string("Equal"));
  }
  c.Refused(
      "Equal", "old broadcast",
      [](B& b) {
        b.Output(b.Op("Equal",
                      {X(b, {2, 3}, "x", DataType::kInt32), X(b, {2}, "y", DataType::kInt32)},
                      MakeAttributes(Int("broadcast", 1), Int("axis", 0))));
      },
      6);
  for (const char* op : {"GreaterOrEqual", "LessOrEqual"}) c.Binary(op, DataType::kFloat, false);
  for (const char* op : {"And", "Or", "Xor"}) c.Binary(op, DataType::kBool);
  c.Unary("Not", DataType::kBool);
  c.Unary("IsNaN");
  c.Unary("IsInf");
  c.Refused("IsInf", "one sign", [](B& b) {
    b.Output(b.Op("IsInf", {X(b, {2, 3})}, MakeAttributes(Int("detect_negative", 0))));
  });
  c.Claimed("Where", "broadcast", [](B& b) {
    b.Output(b.Op("Where", {X(b, {2, 1}, "c", DataType::kBool), X(b, {2, 3}), X(b, {3}, "y")}));
  });
}

void AddReductions(Cases& c) {
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                         "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"}) {
    c.Claimed(op, "axis", [op](B& b) {
      b.Output(b.Op(op, {X(b, {2, 3, 4}), b.Ints({-2})}, MakeAttributes(Int("keepdims", 0))));
    });
    c.Claimed(op, "all", [op](B& b) { b.Output(b.Op(op, {X(b, {2, 3, 4})})); });
    c.Claimed(
        op, "attribute",
        [op](B& b) {
          b.Output(b.Op(op, {X(b, {2, 3, 4})}, MakeAttributes(List("axes", {1, 2}))));
        },
        11);
    c.Refused(op, "fed axes", [op](B& b) {
      b.Output(b.Op(op, {X(b, {2, 3, 4}), X(b, {1}, "axes", DataType::kInt64)}));
    });
  }
  for (const char* op : {"ArgMax", "ArgMin"}) {
    c.Claimed(op, "axis", [op](B& b) {
      b.Output(b.Op(op, {X(b, {2, 3})}, MakeAttributes(Int("axis", -1), Int("keepdims", 0))));
    });
    c.Refused(op, "the last of equal elements", [op](B& b) {
      b.Output(b.Op(op, {X(b, {2, 3})}, MakeAttributes(Int("select_last_index", 1))));
    });
  }
  c.Claimed("CumSum", "reverse and exclusive", [](B& b) {
    b.Output(b.Op("CumSum", {X(b, {2, 3}), b.Constant(Tensor::Of<int64_t>({}, {1}))},
                  MakeAttributes(Int("exclusive", 1), Int("reverse", 1))));
  });
  c.Refused("CumSum", "a fed axis", [](B& b) {
    b.Output(b.Op("CumSum", {X(b, {2, 3}), X(b, {}, "axis", DataType::kInt64)}));
  });
}

void AddMatrices(Cases& c) {
  c.Claimed("MatMul", "batches", [](B& b) {
    b.Output(b.Op("MatMul", {X(b, {2, 3, 4}), Floats(b, {4, 5})}));
  });
  c.Claimed("MatMul", "vector on the left", [](B& b) {
    b.Output(b.Op("MatMul", {X(b, {4}), Floats(b, {2, 4, 5})}));
  });
  c.Claimed("MatMul", "vector on the right", [](B& b) {
    b.Output(b.Op("MatMul", {X(b, {2, 3, 4}), Floats(b, {4})}));
  });
  c.Claimed("MatMul", "two vectors", [](B& b) {
    b.Output(b.Op("MatMul", {X(b, {4}), Floats(b, {4})}));
  });
  c.Refused("MatMul", "integers", [](B& b) {
    b.Output(
        b.Op("MatMul", {X(b, {2, 2}, "x", DataType::kInt32), X(b, {2, 2}, "y", DataType::kInt32)}));
  });
  c.Claimed("Gemm", "transposed", [](B& b) {
    b.Output(b.Op("Gemm", {X(b, {4, 2}), Floats(b, {5, 4}), Floats(b, {5})},
                  MakeAttributes(Int("transA", 1), Int("transB", 1), Float("alpha", 0.5F),
                                 Float("beta", 2))));
  });
  c.Claimed("Gemm", "no C", [](B& b) {
    b.Output(b.Op("Gemm", {X(b, {2, 4}), Floats(b, {4, 5})}));
  });
}

void AddConvolutions(Cases& c) {
  c.Claimed("Conv", "pads, strides, groups", [](B& b) {
    b.Output(
        b.Op("Conv", {X(b, {1, 4, 7, 6}), Floats(b, {6, 2, 3, 3}), Floats(b, {6})},
             MakeAttributes(List("pads", {1, 0, 2, 1}), List("strides", {2, 1}), Int("group", 2))));
  });
  c.Claimed("Conv", "SAME_LOWER", [](B& b) {
    b.Output(b.Op("Conv", {X(b, {1, 2, 7, 6}), Floats(b, {3, 2, 2, 3})},
                  MakeAttributes(Text("auto_pad", "SAME_LOWER"), List("strides", {2, 2}))));
  });
  c.Claimed("Conv", "one axis", [](B& b) {
    b.Output(b.Op("Conv", {X(b, {1, 2, 7}), Floats(b, {3, 2, 3})},
                  MakeAttributes(List("pads", {1, 2}), List("dilations", {2}))));
  });
  c.Refused("Conv", "three axes", [](B& b) {
    b.Output(b.Op("Conv", {X(b, {1, 2, 4, 4, 4}), Floats(b, {3, 2, 3, 3, 3})}));
  });
  c.Claimed("ConvTranspose", "pads, strides, output_padding", [](B& b) {
    b.Output(b.Op("ConvTranspose", {X(b, {1, 4, 3, 4}), Floats(b, {4, 3, 3, 2}), Floats(b, {6})},
                  MakeAttributes(List("pads", {1, 0, 0, 1}), List("strides", {2, 3}),
                                 List("output_padding", {1, 2}), Int("group", 2))));
  });
  c.Claimed("ConvTranspose", "SAME_UPPER", [](B& b) {
    b.Output(b.Op("ConvTranspose", {X(b, {1, 2, 3, 4}), Floats(b, {2, 3, 3, 3})},
                  MakeAttributes(Text("auto_pad", "SAME_UPPER"), List("strides", {2, 2}))));
  });
  c.Claimed("ConvTranspose", "one axis, output_shape", [](B& b) {
    b.Output(b.Op("ConvTranspose", {X(b, {1, 2, 4}), Floats(b, {2, 3, 4})},
                  MakeAttributes(List("strides", {2}), List("output_shape", {8}))));
  });
  c.Refused("ConvTranspose", "three axes", [](B& b) {
    b.Output(b.Op("ConvTranspose", {X(b, {1, 2, 4, 4, 4}), Floats(b, {2, 3, 3, 3, 3})}));
  });
}

void AddPools(Cases& c) {
  for (const char* op : {"AveragePool", "MaxPool", "LpPool"}) {
    c.Claimed(op, "pads and strides", [op](B& b) {
      b.Output(b.Op(op, {X(b, {1, 2, 7, 6})},
                    MakeAttributes(List("kernel_shape", {3, 2}), List("pads", {1, 0, 1, 1}),
                                   List("strides", {2, 1}))));
    });
    c.Claimed(op, "one axis", [op](B& b) {
      b.Output(b.Op(op, {X(b, {1, 2, 7})},
                    MakeAttributes(List("kernel_shape", {3}), List("strides", {2}))));
    });
    c.Refused(op, "three axes", [op](B& b) {
      b.Output(b.Op(op, {X(b, {1, 2, 4, 4, 4})}, MakeAttributes(List("kernel_shape", {2, 2, 2}))));
    });
  }
  c.Claimed("MaxPool", "ceil_mode", [](B& b) {
    b.Output(b.Op("MaxPool", {X(b, {1, 2, 7, 6})},
                  MakeAttributes(List("kernel_shape", {3, 3}), List("strides", {2, 2}),
                                 Int("ceil_mode", 1))));
  });
  c.Claimed("AveragePool", "counted pads", [](B& b) {
    b.Output(b.Op("AveragePool", {X(b, {1, 2, 5, 6})},
                  MakeAttributes(List("kernel_shape", {3, 3}), List("pads", {1, 1, 1, 1}),
                                 Int("count_include_pad", 1))));
  });
  c.Refused("AveragePool", "counted pads and ceil_mode", [](B& b) {
    b.Output(b.Op(
        "AveragePool", {X(b, {1, 2, 6, 6})},
        MakeAttributes(List("kernel_shape", {3, 3}), List("pads", {1, 1, 1, 1}),
                       List("strides", {2, 2}), Int("count_include_pad", 1), Int("ceil_mode", 1))));
  });
  c.Refused("MaxPool", "indices", [](B& b) {
    for (const ValueId id :
         b.OpN("MaxPool", {X(b, {1, 2, 6, 6})}, 2, MakeAttributes(List("kernel_shape", {2, 2})))) {
      b.Output(id);
    }
  });
  for (const char* op : {"LpPool", "GlobalLpPool"}) {
    c.Refused(op, "p = 1", [op](B& b) {
      std::vector<Attribute> attributes = MakeAttributes(Int("p", 1));
      if (op == std::string("LpPool")) attributes.push_back(List("kernel_shape", {2, 2}));
      b.Output(b.Op(op, {X(b, {1, 2, 6, 6})}, std::move(attributes)));
    });
  }
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}) {
    c.Claimed(op, "image", [op](B& b) { b.Output(b.Op(op, {X(b, {1, 2, 5, 6})})); });
  }
}

void AddNormalizations(Cases& c) {
  const auto batch = [](B& b, std::vector<Attribute> attributes, size_t outputs) {
    const Ids made = b.OpN("BatchNormalization",
                           {X(b, {1, 3, 4, 5}), Floats(b, {3}), Floats(b, {3}, -0.5F),
                            Floats(b, {3}, 0.1F), Floats(b, {3}, 1)},
                           outputs, std::move(attributes));
    for (const ValueId id : made) b.Output(id);
  };
  c.Claimed("BatchNormalization", "inference",
            [batch](B& b) { batch(b, MakeAttributes(Float("epsilon", 1e-3F)), 1); });
  c.Refused("BatchNormalization", "training",
            [batch](B& b) { batch(b, MakeAttributes(Int("training_mode", 1)), 3); });
  const auto instance = [](B& b, SymbolicShape shape) {
    b.Output(b.Op("InstanceNormalization",
                  {X(b, std::move(shape)), Floats(b, {3}), Floats(b, {3}, -0.5F)}));
  };
  c.Claimed("InstanceNormalization", "image", [instance](B& b) { instance(b, {2, 3, 4, 5}); });
  c.Claimed("InstanceNormalization", "one axis", [instance](B& b) { instance(b, {2, 3, 8}); });
  c.Refused("InstanceNormalization", "three axes", [instance](B& b) {
    instance(b, {2, 3, 2, 2, 2});
  });
  c.Claimed("LayerNormalization", "scale and bias", [](B& b) {
    b.Output(b.Op("LayerNormalization", {X(b, {2, 3, 4}), Floats(b, {3, 4}), Floats(b, {3, 4}, -1)},
                  MakeAttributes(Int("axis", 1))));
  });
  c.Claimed("LayerNormalization", "scale alone", [](B& b) {
    b.Output(b.Op("LayerNormalization", {X(b, {2, 3, 4}), Floats(b, {4})}));
  });
  c.Refused("LayerNormalization", "mean", [](B& b) {
    for (const ValueId id : b.OpN("LayerNormalization", {X(b, {2, 3}), Floats(b, {3})}, 2)) {
      b.Output(id);
    }
  });
  c.Claimed(
      "RMSNormalization", "scale",
      [](B& b) {
        b.Output(b.Op("RMSNormalization", {X(b, {2, 3, 4}), Floats(b, {4})}));
      },
      23);
  c.Claimed("SimplifiedLayerNormalization", "scale", [](B& b) {
    b.Output(b.Op("SimplifiedLayerNormalization", {X(b, {2, 3, 4}), Floats(b, {4})}));
  });
  c.Refused("SimplifiedLayerNormalization", "deviation", [](B& b) {
    for (const ValueId id :
         b.OpN("SimplifiedLayerNormalization", {X(b, {2, 3, 4}), Floats(b, {4})}, 2)) {
      b.Output(id);
    }
  });
  c.Claimed(
      "SkipLayerNormalization", "beta and bias",
      [](B& b) {
        const Ids made = b.OpN("SkipLayerNormalization",
                               {X(b, {1, 3, 4}), X(b, {1, 3, 4}, "skip"), Floats(b, {4}),
                                Floats(b, {4}, -1), Floats(b, {4}, 2)},
                               4, {}, kMicrosoft);
        b.graph->SetOutputValue(b.graph->value(made[0]).producer, 1, ValueId::kNone);
        b.graph->SetOutputValue(b.graph->value(made[0]).producer, 2, ValueId::kNone);
        b.Output(made[0]);
        b.Output(made[3]);
      },
      21, kMicrosoft);
  c.Refused(
      "SkipLayerNormalization", "mean",
      [](B& b) {
        for (const ValueId id :
             b.OpN("SkipLayerNormalization",
                   {X(b, {1, 3, 4}), X(b, {1, 3, 4}, "skip"), Floats(b, {4})}, 2, {}, kMicrosoft)) {
          b.Output(id);
        }
      },
      21, kMicrosoft);
  c.Claimed(
      "SkipSimplifiedLayerNormalization", "plain",
      [](B& b) {
        b.Output(b.Op("SkipSimplifiedLayerNormalization",
                      {X(b, {1, 3, 4}), X(b, {1, 3, 4}, "skip"), Floats(b, {4})}, {}, kMicrosoft));
      },
      21, kMicrosoft);
  c.Refused(
      "SkipSimplifiedLayerNormalization", "mean",
      [](B& b) {
        for (const ValueId id :
             b.OpN("SkipSimplifiedLayerNormalization",
                   {X(b, {1, 3, 4}), X(b, {1, 3, 4}, "skip"), Floats(b, {4})}, 2, {}, kMicrosoft)) {
          b.Output(id);
        }
      },
      21, kMicrosoft);
  c.Claimed("GroupNormalization", "groups", [](B& b) {
    b.Output(b.Op("GroupNormalization", {X(b, {2, 4, 3, 2}), Floats(b, {4}), Floats(b, {4}, -1)},
                  MakeAttributes(Int("num_groups", 2))));
  });
  for (const int64_t p : {2, 1}) {
    c.Claimed("LpNormalization", p == 1 ? "p = 1" : "p = 2", [p](B& b) {
      b.Output(
          b.Op("LpNormalization", {X(b, {2, 3, 2})}, MakeAttributes(Int("axis", 1), Int("p", p))));
    });
  }
  c.Claimed("LRN", "even size", [](B& b) {
    b.Output(b.Op("LRN", {X(b, {1, 5, 3, 2})},
                  MakeAttributes(Int("size", 4), Float("alpha", 0.5F), Float("bias", 2))));
  });
  c.Refused("LRN", "two axes", [](B& b) {
    b.Output(b.Op("LRN", {X(b, {2, 5})}, MakeAttributes(Int("size", 3))));
  });
}

void AddMovements(Cases& c) {
  c.Claimed("Concat", "axis", [](B& b) {
    b.Output(b.Op("Concat", {X(b, {2, 3}), X(b, {2, 1}, "y"), Floats(b, {2, 2})},
                  MakeAttributes(Int("axis", -1))));
  });
  for (const char* mode : {"DCR", "CRD"}) {
    c.Claimed("DepthToSpace", mode, [mode](B& b) {
      b.Output(b.Op("DepthToSpace", {X(b, {1, 8, 2, 3})},
                    MakeAttributes(Int("blocksize", 2), Text("mode", mode))));
    });
  }
  c.Claimed("SpaceToDepth", "blocks", [](B& b) {
    b.Output(b.Op("SpaceToDepth", {X(b, {1, 2, 4, 6})}, MakeAttributes(Int("blocksize", 2))));
  });
  for (const char* mode : {"DCR", "CRD"}) {
    c.Claimed(
        "SpaceToDepth", mode,
        [mode](B& b) {
          b.Output(b.Op("SpaceToDepth", {X(b, {1, 2, 4, 6})},
                        MakeAttributes(Int("blocksize", 2), Text("mode", mode))));
        },
        28);
  }
  c.Claimed("Expand", "constant shape", [](B& b) {
    b.Output(b.Op("Expand", {X(b, {3, 1}), b.Ints({2, 1, 4})}));
  });
  c.Refused("Expand", "a fed shape", [](B& b) {
    b.Output(b.Op("Expand", {X(b, {3, 1}), X(b, {2}, "shape", DataType::kInt64)}));
  });
  c.Claimed("Flatten", "axis", [](B& b) {
    b.Output(b.Op("Flatten", {X(b, {2, 3, 4})}, MakeAttributes(Int("axis", 2))));
  });
  c.Claimed("Reshape", "constant shape", [](B& b) {
    b.Output(b.Op("Reshape", {X(b, {2, 3, 4}), b.Ints({0, -1})}));
  });
  c.Refused("Reshape", "a fed shape", [](B& b) {
    b.Output(b.Op("Reshape", {X(b, {2, 3, 4}), X(b, {2}, "shape", DataType::kInt64)}));
  });
  c.Claimed("Squeeze", "axes", [](B& b) {
    b.Output(b.Op("Squeeze", {X(b, {1, 3, 1}), b.Ints({2})}));
  });
  c.Refused("Squeeze", "fed axes", [](B& b) {
    b.Output(b.Op("Squeeze", {X(b, {1, 3, 1}), X(b, {1}, "axes", DataType::kInt64)}));
  });
  c.Claimed("Unsqueeze", "axes", [](B& b) {
    b.Output(b.Op("Unsqueeze", {X(b, {3, 2}), b.Ints({0, -1})}));
  });
  c.Refused("Unsqueeze", "fed axes", [](B& b) {
    b.Output(b.Op("Unsqueeze", {X(b, {3}), X(b, {1}, "axes", DataType::kInt64)}));
  });
  c.Claimed("Transpose", "perm", [](B& b) {
    b.Output(b.Op("Transpose", {X(b, {2, 3, 4})}, MakeAttributes(List("perm", {1, 2, 0}))));
  });
  c.Claimed("Transpose", "reversed", [](B& b) { b.Output(b.Op("Transpose", {X(b, {2, 3, 4})})); });
  c.Claimed("Slice", "steps", [](B& b) {
    b.Output(b.Op("Slice", {X(b, {7, 6}), b.Ints({1, -5}), b.Ints({100, -1}), b.Ints({0, 1}),
                            b.Ints({3, 2})}));
  });
  c.Claimed("Slice", "backwards", [](B& b) {
    b.Output(b.Op("Slice", {X(b, {7, 6}), b.Ints({-2, 4}), b.Ints({0, -100}), b.Ints({0, 1}),
                            b.Ints({-2, -1})}));
  });
  c.Claimed(
      "Slice", "attributes",
      [](B& b) {
        b.Output(b.Op("Slice", {X(b, {7, 6})},
                      MakeAttributes(List("starts", {1}), List("ends", {-1}), List("axes", {1}))));
      },
      9);
  c.Refused("Slice", "fed bounds", [](B& b) {
    b.Output(b.Op("Slice", {X(b, {7, 6}), X(b, {1}, "starts", DataType::kInt64), b.Ints({5})}));
  });
  c.Refused("Slice", "nothing", [](B& b) {
    b.Output(b.Op("Slice", {X(b, {7, 6}), b.Ints({2}), b.Ints({2})}));
  });
  c.Claimed("Split", "sizes", [](B& b) {
    for (const ValueId id :
         b.OpN("Split", {X(b, {2, 6}), b.Ints({1, 3, 2})}, 3, MakeAttributes(Int("axis", 1)))) {
      b.Output(id);
    }
  });
  c.Refused("Split", "fed sizes", [](B& b) {
    for (const ValueId id :
         b.OpN("Split", {X(b, {2, 6}), X(b, {2}, "sizes", DataType::kInt64)}, 2)) {
      b.Output(id);
    }
  });
  c.Claimed("Tile", "repeats", [](B& b) {
    b.Output(b.Op("Tile", {X(b, {2, 3}), b.Ints({2, 1})}));
  });
  c.Refused("Tile", "fed repeats", [](B& b) {
    b.Output(b.Op("Tile", {X(b, {2, 3}), X(b, {2}, "repeats", DataType::kInt64)}));
  });
  c.Claimed("Trilu", "lower", [](B& b) {
    b.Output(b.Op("Trilu", {X(b, {3, 4}), b.Constant(Tensor::Of<int64_t>({}, {-1}))},
                  MakeAttributes(Int("upper", 0))));
  });
  c.Refused("Trilu", "a fed diagonal", [](B& b) {
    b.Output(b.Op("Trilu", {X(b, {3, 4}), X(b, {}, "k", DataType::kInt64)}));
  });
  for (const char* mode : {"constant", "edge", "reflect"}) {
    c.Claimed("Pad", mode, [mode](B& b) {
      b.Output(
          b.Op("Pad", {X(b, {3, 4}), b.Ints({1, 0, 2, 3})}, MakeAttributes(Text("mode", mode))));
    });
  }
  c.Claimed("Pad", "value and axes", [](B& b) {
    b.Output(b.Op("Pad", {X(b, {3, 4}), b.Ints({1, 2}), b.Scalar(-1), b.Ints({1})}));
  });
  c.Refused("Pad", "wrap", [](B& b) {
    b.Output(
        b.Op("Pad", {X(b, {3, 4}), b.Ints({1, 0, 2, 3})}, MakeAttributes(Text("mode", "wrap"))));
  });
  c.Refused("Pad", "negative", [](B& b) {
    b.Output(b.Op("Pad", {X(b, {3, 4}), b.Ints({-1, 0, 0, 0})}));
  });
  c.Refused("Pad", "fed pads", [](B& b) {
    b.Output(b.Op("Pad", {X(b, {3, 4}), X(b, {4}, "pads", DataType::kInt64)}));
  });
}

void AddIndexing(Cases& c) {
  c.Claimed("Gather", "axis", [](B& b) {
    b.Output(b.Op("Gather", {X(b, {3, 4}), b.Constant(Tensor::Of<int64_t>({2, 2}, {0, 3, -1, 1}))},
                  MakeAttributes(Int("axis", 1))));
  });
  c.Claimed("Gather", "scalar index", [](B& b) {
    b.Output(b.Op("Gather", {X(b, {3, 4}), b.Constant(Tensor::Of<int64_t>({}, {2}))}));
  });
  c.Claimed("GatherElements", "axis", [](B& b) {
    b.Output(b.Op("GatherElements",
                  {X(b, {3, 2}), b.Constant(Tensor::Of<int64_t>({2, 2}, {0, 2, 1, -1}))}));
  });
  c.Claimed("GatherND", "pairs", [](B& b) {
    b.Output(
        b.Op("GatherND", {X(b, {3, 4, 2}), b.Constant(Tensor::Of<int64_t>({2, 2}, {0, 3, 2, 1}))}));
  });
  c.Refused("GatherND", "batches", [](B& b) {
    b.Output(b.Op("GatherND", {X(b, {2, 4}), b.Constant(Tensor::Of<int64_t>({2, 1}, {0, 3}))},
                  MakeAttributes(Int("batch_dims", 1))));
  });
  const auto scatter = [](B& b, const char* op, std::vector<Attribute> attributes) {
    const ValueId indices = b.Constant(Tensor::Of<int64_t>({1, 2}, {1, 0}));
    b.Output(b.Op(op, {X(b, {3, 2}), indices, X(b, {1, 2}, "updates")}, std::move(attributes)));
  };
  c.Claimed("ScatterElements", "axis", [scatter](B& b) { scatter(b, "ScatterElements", {}); });
  c.Claimed(
      "Scatter", "axis", [scatter](B& b) { scatter(b, "Scatter", {}); }, 10);
  const auto scatter_nd = [](B& b, std::vector<Attribute> attributes) {
    b.Output(b.Op(
        "ScatterND",
        {X(b, {4, 2}), b.Constant(Tensor::Of<int64_t>({2, 1}, {3, 1})), X(b, {2, 2}, "updates")},
        std::move(attributes)));
  };
  c.Claimed("ScatterND", "rows", [scatter_nd](B& b) { scatter_nd(b, {}); });
  c.Refused("ScatterElements", "sum", [scatter](B& b) {
    scatter(b, "ScatterElements", MakeAttributes(Text("reduction", "add")));
  });
  c.Refused("ScatterND", "sum",
            [scatter_nd](B& b) { scatter_nd(b, MakeAttributes(Text("reduction", "add"))); });
}

void AddResizing(Cases& c) {
  const auto resize = [](B& b, std::vector<float> scales, std::vector<Attribute> attributes) {
    const auto rank = static_cast<int64_t>(scales.size());
    const ValueId factors = b.Constant(Tensor::Of<float>({rank}, scales));
    Dims dims = {1, 2, 3, 4};
    dims.resize(scales.size());
    b.Output(b.Op("Resize", {X(b, SymbolicShape(dims)), ValueId::kNone, factors},
                  std::move(attributes)));
  };
  c.Claimed("Resize", "nearest by whole factors", [resize](B& b) {
    resize(b, {1, 1, 2, 3},
           MakeAttributes(Text("coordinate_transformation_mode", "asymmetric"),
                          Text("nearest_mode", "floor")));
  });
  c.Claimed("Resize", "nearest by half pixels", [resize](B& b) { resize(b, {1, 1, 2, 1.5F}, {}); });
  c.Claimed("Resize", "linear by half pixels", [resize](B& b) {
    resize(b, {1, 1, 2, 2}, MakeAttributes(Text("mode", "linear")));
  });
  c.Claimed("Resize", "one axis of three", [resize](B& b) {
    resize(b, {1, 1, 2}, MakeAttributes(Text("mode", "linear")));
  });
  c.Claimed("Resize", "sizes", [](B& b) {
    b.Output(b.Op("Resize",
                  {X(b, {1, 2, 3, 4}), ValueId::kNone, ValueId::kNone, b.Ints({1, 2, 6, 2})},
                  MakeAttributes(Text("mode", "linear"))));
  });
  c.Refused("Resize", "asymmetric linear", [resize](B& b) {
    resize(b, {1, 1, 2, 2},
           MakeAttributes(Text("mode", "linear"),
                          Text("coordinate_transformation_mode", "asymmetric")));
  });
  c.Refused("Resize", "cubic", [resize](B& b) {
    resize(b, {1, 1, 2, 2}, MakeAttributes(Text("mode", "cubic")));
  });
  c.Refused("Resize", "three axes", [resize](B& b) { resize(b, {1, 2, 2, 2}, {}); });
  c.Refused("Resize", "a part of an element", [resize](B& b) { resize(b, {1, 1, 1.5F, 1}, {}); });
  const auto upsample = [](B& b, const char* mode) {
    b.Output(b.Op("Upsample",
                  {X(b, {1, 2, 3, 4}), b.Constant(Tensor::Of<float>({4}, {1, 1, 2, 2}))},
                  MakeAttributes(Text("mode", mode))));
  };
  c.Claimed(
      "Upsample", "nearest", [upsample](B& b) { upsample(b, "nearest"); }, 9);
  c.Refused(
      "Upsample", "linear", [upsample](B& b) { upsample(b, "linear"); }, 9);
}

void AddQuantization(Cases& c) {
  const auto bytes = [](B& b) { return b.Constant(Tensor::Of<uint8_t>({}, {100})); };
  c.Claimed("QuantizeLinear", "by tensor", [bytes](B& b) {
    b.Output(b.Op("QuantizeLinear", {X(b, {2, 3}), b.Scalar(0.05F), bytes(b)}));
  });
  c.Claimed("QuantizeLinear", "by axis, no zero point", [](B& b) {
    b.Output(
        b.Op("QuantizeLinear", {X(b, {2, 3}), Floats(b, {3})}, MakeAttributes(Int("axis", 1))));
  });
  c.Claimed("DequantizeLinear", "by tensor", [bytes](B& b) {
    b.Output(
        b.Op("DequantizeLinear", {X(b, {2, 3}, "x", DataType::kUint8), b.Scalar(0.05F), bytes(b)}));
  });
  c.Claimed("DequantizeLinear", "by axis, no zero point", [](B& b) {
    b.Output(b.Op("DequantizeLinear", {X(b, {2, 3}, "x", DataType::kInt8), Floats(b, {2})},
                  MakeAttributes(Int("axis", 0))));
  });
  c.Refused("DequantizeLinear", "16 bits", [](B& b) {
    b.Output(b.Op("DequantizeLinear", {X(b, {2, 3}, "x", DataType::kInt16), b.Scalar(0.05F)}));
  });
}

void AddIntegerProducts(Cases& c) {
  const auto bytes = [](B& b, Shape shape, int seed) {
    std::vector<uint8_t> values(static_cast<size_t>(shape.NumElements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(37 * i + seed);
    return b.Constant(Tensor::Of<uint8_t>(std::move(shape), values));
  };
  c.Claimed("MatMulInteger", "zero points of columns", [bytes](B& b) {
    b.Output(b.Op("MatMulInteger", {X(b, {2, 3, 4}, "x", DataType::kUint8), bytes(b, {4, 5}, 3),
                                    bytes(b, {}, 7), bytes(b, {5}, 90)}));
  });
  c.Claimed("MatMulInteger", "no zero points", [bytes](B& b) {
    b.Output(b.Op("MatMulInteger", {X(b, {3, 4}, "x", DataType::kUint8), bytes(b, {4, 2}, 3)}));
  });
  c.Refused("MatMulInteger", "vectors", [bytes](B& b) {
    b.Output(b.Op("MatMulInteger", {X(b, {4}, "x", DataType::kUint8), bytes(b, {4, 2}, 3)}));
  });
  c.Claimed("ConvInteger", "pads", [bytes](B& b) {
    b.Output(b.Op(
        "ConvInteger",
        {X(b, {1, 2, 5, 4}, "x", DataType::kUint8), bytes(b, {3, 2, 3, 3}, 3), bytes(b, {}, 7)},
        MakeAttributes(List("pads", {1, 0, 1, 2}), List("strides", {2, 1}))));
  });
  c.Refused("ConvInteger", "one axis", [bytes](B& b) {
    b.Output(b.Op("ConvInteger", {X(b, {1, 2, 5}, "x", DataType::kUint8), bytes(b, {3, 2, 3}, 3)}));
  });
}

void AddEinsum(Cases& c) {
  struct Form {
    const char* equation;
    SymbolicShape x, y;
  };
  const auto build = [](const Form& form) {
    return [form](B& b) {
      Ids inputs = {X(b, form.x)};
      if (form.y.rank() > 0) inputs.push_back(X(b, form.y, "y"));
      b.Output(b.Op("Einsum", inputs, MakeAttributes(Text("equation", form.equation))));
    };
  };
  for (const Form& form : std::vector<Form>{{"ij,jk->ik", {2, 3}, {3, 4}},
                                            {"bhid,bhjd->bhij", {1, 2, 3, 4}, {1, 2, 5, 4}},
                                            {"...ij,...kj->...ki", {2, 3, 4}, {2, 5, 4}},
                                            {"i,j->ij", {2}, {3}},
                                            {"ij,i->j", {2, 3}, {2}},
                                            {"ijk,l->kl", {2, 3, 4}, {5}},
                                            {"ij,ij->", {2, 3}, {2, 3}},
                                            {"ijk->ki", {2, 3, 4}, {}}}) {
    c.Claimed("Einsum", form.equation, build(form));
  }
  c.Refused("Einsum", "diagonal", build({"ii->i", {3, 3}, {}}));
  c.Refused("Einsum", "broadcast", build({"ij,jk->ik", {2, 1}, {3, 4}}));
  c.Refused("Einsum", "three operands", [](B& b) {
    b.Output(b.Op("Einsum", {X(b, {2, 3}), X(b, {3, 4}, "y"), X(b, {4, 2}, "z")},
                  MakeAttributes(Text("equation", "ij,jk,kl->il"))));
  });
}

void AddRecurrence(Cases& c) {
  struct Form {
    const char* op;
    int64_t gates;
    size_t outputs;
  };
  for (const Form form : {Form{"LSTM", 4, 3}, Form{"GRU", 3, 2}}) {
    const auto build = [form](B& b, std::vector<Attribute> attributes, int64_t directions = 1,
                              Ids more = {}) {
      const int64_t hidden = 2, size = 3;
      attributes.push_back(Int("hidden_size", hidden));
      Ids inputs = {X(b, {4, 1, size}), Floats(b, {directions, form.gates * hidden, size}, -0.4F),
                    Floats(b, {directions, form.gates * hidden, hidden}, -0.3F),
                    Floats(b, {directions, 2 * form.gates * hidden}, -0.2F)};
      inputs.insert(inputs.end(), more.begin(), more.end());
      for (const ValueId id : b.OpN(form.op, inputs, form.outputs, std::move(attributes))) {
        b.Output(id);
      }
    };
    c.Claimed(form.op, "forward", [build](B& b) { build(b, {}); });
    c.Claimed(form.op, "both directions",
              [build](B& b) { build(b, MakeAttributes(Text("direction", "bidirectional")), 2); });
    c.Claimed(form.op, "reverse, with a state", [build](B& b) {
      build(b, MakeAttributes(Text("direction", "reverse")), 1,
            {b.Constant(Tensor::Of<int32_t>({1}, {4})), Floats(b, {1, 1, 2})});
    });
    c.Refused(form.op, "shorter sequences",
              [build](B& b) { build(b, {}, 1, {b.Constant(Tensor::Of<int32_t>({1}, {3}))}); });
    c.Refused(form.op, "other activations", [build, form](B& b) {
      std::vector<std::string> names(form.outputs, "Tanh");
      names[0] = "HardSigmoid";
      build(b, MakeAttributes(Texts("activations", names)));
    });
    c.Refused(form.op, "clip", [build](B& b) { build(b, MakeAttributes(Float("clip", 1))); });
  }
  c.Claimed("GRU", "linear_before_reset", [](B& b) {
    b.OpN("GRU",
          {X(b, {4, 1, 3}), Floats(b, {1, 6, 3}, -0.4F), Floats(b, {1, 6, 2}, -0.3F),
           Floats(b, {1, 12}, -0.2F)},
          2, MakeAttributes(Int("hidden_size", 2), Int("linear_before_reset", 1)));
    b.graph->AddOutput("y", b.graph->node(NodeId{0}).outputs[0]);
  });
  c.Refused("LSTM", "peepholes", [](B& b) {
    b.OpN("LSTM",
          {X(b, {4, 1, 3}), Floats(b, {1, 8, 3}, -0.4F), Floats(b, {1, 8, 2}, -0.3F),
           Floats(b, {1, 16}, -0.2F), ValueId::kNone, Floats(b, {1, 1, 2}), Floats(b, {1, 1, 2}),
           Floats(b, {1, 6})},
          3, MakeAttributes(Int("hidden_size", 2)));
    b.graph->AddOutput("y", b.graph->node(NodeId{0}).outputs[1]);
  });
}

// Operators that have no row of their own.
void AddBodies(Cases& c) {
  c.Claimed("Shrink", "body", [](B& b) {
    b.Output(b.Op("Shrink", {X(b, {2, 3})}, MakeAttributes(Float("lambd", 0.4F))));
  });
  c.Refused("NonZero", "data decide", [](B& b) { b.Output(b.Op("NonZero", {X(b, {2, 3})})); });
}

}  // namespace

std::span<const RowCase> RowCases() {
  static const std::vector<RowCase> cases = [] {
    Cases c;
    AddActivations(c);
    AddElementwise(c);
    AddComparisons(c);
    AddReductions(c);
    AddMatrices(c);
    AddConvolutions(c);
    AddPools(c);
    AddNormalizations(c);
    AddMovements(c);
    AddIndexing(c);
    AddResizing(c);
    AddQuantization(c);
    AddIntegerProducts(c);
    AddEinsum(c);
    AddRecurrence(c);
    AddBodies(c);
    return c.Take();
  }();
  return cases;
}

}  // namespace tenon::webnn
